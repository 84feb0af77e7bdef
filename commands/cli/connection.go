// The options of the subcommands that connect to a daemon: which one, and how.

package cli

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"redlockd/proxy/tlsconf"
)

const defaultConnect = "127.0.0.1:7379"

// connection has the options that describe the daemons.
type connection struct {
	connect     []string
	ca          string         // file
	authorities *x509.CertPool // in it; nil = those the machine trusts
	database    int
}

// connection returns the one of the environment, until options change it.
func (a *App) connection() connection {
	if list := a.variable("LOCK_CONNECT"); list != "" {
		return connection{connect: strings.Split(list, ",")}
	}
	return connection{connect: []string{defaultConnect}}
}

// flags are the options of a subcommand over c. A usage is the name of the value, a tab and
// the help.
func (c *connection) flags(word string) *pflag.FlagSet {
	flags := pflag.NewFlagSet(word, pflag.ContinueOnError)
	flags.SortFlags = false
	flags.Usage = func() {} // Report prints errors, the subcommand prints --help
	flags.StringSliceVar(&c.connect, "connect", c.connect, "LIST\tdaemons: [tls:]host:port, unix:/path, the next one if one fails ["+defaultConnect+"]")
	flags.StringVar(&c.ca, "ca", "", "FILE\tPEM, the signers of the certificates of tls: daemons [those the machine trusts]")
	flags.IntVar(&c.database, "db", 0, "N\tdatabase [0]")
	return flags
}

func optionsOf(flags *pflag.FlagSet) (all []flagRow) {
	flags.VisitAll(func(f *pflag.Flag) {
		argument, help, _ := strings.Cut(f.Usage, "\t")
		all = append(all, flagRow{f.Name, argument, help})
	})
	return all
}

func helpRows(options []flagRow) (rows string) {
	for _, o := range options {
		rows += fmt.Sprintf("      %-18s%s\n", "--"+o.Name+" "+o.Argument, o.Help)
	}
	return rows
}

// check also reads the file of --ca.
func (c *connection) check() (err error) {
	switch {
	case c.database < 0:
		return fmt.Errorf("--db is %d, allowed are 0 and more", c.database)
	case len(c.connect) == 0 || slices.Contains(c.connect, ""):
		return errors.New("--connect names no daemon; write for example --connect 10.0.0.1:7379,10.0.0.2:7379")
	case c.ca == "":
		return nil
	}
	if c.authorities, err = tlsconf.ReadAuthorities(c.ca); err != nil {
		err = fmt.Errorf("--ca: %w", err)
	}
	return err
}

// daemons connects at the first command.
func (a *App) daemons(c connection) *daemons {
	return &daemons{
		addresses: c.connect, username: a.variable("LOCK_USER"), password: a.variable("LOCK_PASSWORD"),
		database: c.database, authorities: c.authorities,
	}
}
