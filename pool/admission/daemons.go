// Daemons: the daemons that use a master, or that it refuses, and the epoch that each has. The name of a
// lane's connection has both. The commands of operators read it, and so does an operator in CLIENT LIST.

package admission

import (
	"cmp"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"redlockd/pool/wire"
)

// Daemon is a daemon as its connections to a master show it.
type Daemon struct {
	Name    string // host/pid
	Address string // of its machine
	Epoch   int64  // 0 if it has met no quorum with its settings
}

// DaemonName tells the daemon's processes apart for people.
func DaemonName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "/" + strconv.Itoa(os.Getpid())
}

// Announce names a connection before its admission. A master that refuses the name only shows less.
func Announce(link wire.Link, group, mark string) error {
	_, err := wire.AskOne(link, "CLIENT", "SETNAME", connectionPrefix(group)+strconv.FormatInt(EpochOf(mark), 10)+":"+url.PathEscape(DaemonName()))
	return err
}

// connectionPrefix begins the names of a group's lanes. The group's name may have
// every character, and the rest of the name none that is escaped.
func connectionPrefix(group string) string { return "redlockd:" + url.QueryEscape(group) + ":epoch-" }

// Daemons reads the daemons of a group that a master has admitted, each with the newest of its
// epochs, in the order of their names. Daemons of earlier versions have no name.
func Daemons(link wire.Link, group string) ([]Daemon, error) {
	reply, err := wire.AskOne(link, "CLIENT", "LIST", "TYPE", "normal")
	if err = cmp.Or(err, reply.Err); err != nil {
		return nil, err
	}
	return DaemonsOf(reply.Str, group), nil
}

// DaemonsOf reads the daemons of a group from a list of connections.
func DaemonsOf(list, group string) (all []Daemon) {
	for line := range strings.Lines(list) {
		if d, ok := daemonOf(line, connectionPrefix(group)); ok {
			all = MergeDaemons(all, d)
		}
	}
	return all
}

// daemonOf reads a line of CLIENT LIST.
func daemonOf(line, prefix string) (d Daemon, ok bool) {
	for field := range strings.FieldsSeq(line) {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "addr":
			d.Address = value
			if host, _, err := net.SplitHostPort(value); err == nil {
				d.Address = host
			}
		case "name":
			rest, named := strings.CutPrefix(value, prefix)
			epoch, name, _ := strings.Cut(rest, ":")
			var err, bad error
			d.Epoch, err = strconv.ParseInt(epoch, 10, 64)
			d.Name, bad = url.PathUnescape(name)
			ok = named && err == nil && bad == nil && d.Name != ""
		}
	}
	return d, ok
}

// MergeDaemons adds daemons to a list in the order of their names.
func MergeDaemons(all []Daemon, more ...Daemon) []Daemon {
	for _, d := range more {
		i, found := slices.BinarySearchFunc(all, d, func(a, b Daemon) int { return strings.Compare(a.Name, b.Name) })
		if !found {
			all = slices.Insert(all, i, d)
			continue
		}
		if d.Epoch > all[i].Epoch {
			all[i] = d
		}
	}
	return all
}
