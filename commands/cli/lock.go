// redlockd lock KEY -- COMMAND: runs a command while a lock is held, as flock does
// for one machine.

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"redlockd/redlock"
)

// ExitHeld: the lock was not free in time; nothing was run. It is
// EX_TEMPFAIL of sysexits.h, which schedulers take for "try again".
const ExitHeld = 75

const (
	defaultTTL  = 30 * time.Second
	defaultWait = 10 * time.Second
	minTTL      = 100 * time.Millisecond // a third of it is the time for an extension
	maxGrace    = 5 * time.Second
)

const lockUsage = `redlockd lock [OPTION…] KEY -- COMMAND [ARGUMENT…]: runs COMMAND while the lock on KEY is held

`

const lockNotes = `
COMMAND finds LOCK_KEY, LOCK_TOKEN and LOCK_FENCE in its environment; let what it writes to refuse
a smaller fence. DINFO and the page show the user, the machine, the process and COMMAND's program as META. After a wait COMMAND starts only when an extension has confirmed the lock. LOCK_USER and LOCK_PASSWORD authenticate to the daemon, LOCK_CONNECT is --connect.
Exit code: COMMAND's; 128 and the signal that ended it; 75 if the lock was held by another client,
126 or 127 if COMMAND could not be run, 2 for wrong usage, 1 for everything else.
`

func lockHelp() string { return lockUsage + helpRows(optionsOf(lockFlags(&lockOptions{}))) + lockNotes }

// lockOptions is the command line of lock.
type lockOptions struct {
	connection
	ttl     time.Duration
	wait    time.Duration
	grace   time.Duration
	onLost  string // kill or warn
	key     string
	command []string
}

func (a *App) lock(ctx context.Context, args []string) error {
	o, err := a.lockOptions(args)
	if errors.Is(err, pflag.ErrHelp) {
		return a.print(lockHelp())
	}
	if err != nil {
		return fmt.Errorf("lock: %w%w", err, usage{})
	}
	d := a.daemons(o.connection)
	defer d.close()
	l := &clientLease{daemons: d, key: o.key, ttl: o.ttl, token: string(redlock.NewToken()), meta: holderText(o.command[0])}
	switch err := l.take(ctx, o.wait, a.Err); {
	case errors.Is(err, errHeld):
		return &Exit{ExitHeld, fmt.Sprintf("lock %s: %v", o.key, err)}
	case err != nil:
		return fmt.Errorf("lock %s: %w", o.key, err)
	}
	// Not CommandContext: the end of ctx is a request to the command, not its end.
	command := exec.Command(o.command[0], o.command[1:]...)
	command.Stdin, command.Stdout, command.Stderr = a.In, a.Out, a.Err
	command.Env = a.commandEnviron(l)
	g := &guard{lease: l, command: command, log: a.Err, grace: o.grace, warn: o.onLost == "warn"}
	if code := g.run(ctx); code != ExitOK {
		return &Exit{Code: code}
	}
	return nil
}

// maxMeta is the longest META.
const maxMeta = 512

// holderText describes this holder for people: the user, the machine, this process, and the program that it
// runs. The program's arguments may be secrets.
func holderText(program string) string {
	name := "uid " + strconv.Itoa(os.Getuid())
	if me, err := user.Current(); err == nil {
		name = me.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	text := fmt.Sprintf("%s@%s pid %d: %s", name, host, os.Getpid(), program)
	return strings.ToValidUTF8(text[:min(len(text), maxMeta)], "")
}

// commandEnviron is ours without the password, and with the lock.
func (a *App) commandEnviron(l *clientLease) []string {
	environ := slices.DeleteFunc(slices.Clone(a.Environ), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains([]string{"LOCK_PASSWORD", "LOCK_KEY", "LOCK_TOKEN", "LOCK_FENCE"}, name)
	})
	return append(environ, "LOCK_KEY="+l.key, "LOCK_TOKEN="+l.token, "LOCK_FENCE="+strconv.FormatInt(l.fence, 10))
}

func (a *App) lockOptions(args []string) (lockOptions, error) {
	o := lockOptions{connection: a.connection()}
	flags := lockFlags(&o)
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	rest := flags.Args()
	if flags.ArgsLenAtDash() != 1 || len(rest) < 2 {
		return o, errors.New("write lock [OPTION…] KEY -- COMMAND [ARGUMENT…]; see redlockd lock --help")
	}
	o.key, o.command = rest[0], rest[1:]
	if o.grace == 0 {
		o.grace = min(maxGrace, o.ttl/6)
	}
	err := o.check()
	return o, err
}

// lockFlags are the options over o. A usage is the name of the value, a tab and the help.
func lockFlags(o *lockOptions) *pflag.FlagSet {
	flags := o.connection.flags("lock")
	flags.DurationVar(&o.ttl, "ttl", defaultTTL, "TIME\tlease, extended every third of it while COMMAND runs ["+defaultTTL.String()+"]")
	flags.DurationVar(&o.wait, "wait", defaultWait, "TIME\thow long to wait for the lock, also while masters or daemons fail; 0 is one try ["+defaultWait.String()+"]")
	flags.StringVar(&o.onLost, "on-lost", "kill", "WORD\tkill: end COMMAND when the lock is lost; warn: print a message and let it go on [kill]")
	flags.DurationVar(&o.grace, "grace", 0, "TIME\tfrom TERM to KILL [a sixth of the lease, at most "+maxGrace.String()+"]")
	return flags
}

// check checks what the daemon does not.
func (o *lockOptions) check() error {
	switch {
	case o.ttl < minTTL || o.ttl%time.Millisecond != 0:
		return fmt.Errorf("--ttl is %s, allowed are whole milliseconds from %s on; it is extended every third of it", o.ttl, minTTL)
	case o.wait < 0 || o.wait%time.Millisecond != 0:
		return fmt.Errorf("--wait is %s, allowed are whole milliseconds from 0 on", o.wait)
	case o.grace < 0 || o.grace > o.ttl/2:
		return fmt.Errorf("--grace is %s, allowed are 0 to %s, half of --ttl: the command must have ended when the lock is lost", o.grace, o.ttl/2)
	case o.onLost != "kill" && o.onLost != "warn":
		return fmt.Errorf("--on-lost is %q, allowed are kill and warn", o.onLost)
	}
	return o.connection.check()
}
