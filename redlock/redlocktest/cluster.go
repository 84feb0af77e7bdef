package redlocktest

import (
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/faulty"
	"redlockd/pool/setup"
)

const (
	// Patience bounds waits for what must happen; nothing is concluded from its length.
	Patience = time.Minute
	// Long is a lease that no test outlives, and longer than Patience: what is gone within it
	// did not expire.
	Long = 3 * time.Minute
	// masterTimeout is wide enough for a busy machine.
	masterTimeout = 2 * time.Second
)

// Cluster is a group of masters. It is bootstrapped for its first daemon.
type Cluster struct {
	T       *testing.T
	Servers []*faulty.Server

	maxTTL       time.Duration
	bootstrapped bool
}

// NewCluster starts n masters for leases of maxTTL at most.
func NewCluster(t *testing.T, n int, maxTTL time.Duration) *Cluster {
	t.Helper()
	return &Cluster{T: t, Servers: faulty.StartGroup(t, n), maxTTL: maxTTL}
}

// name of a master, the same for every daemon.
func name(i int) string { return string(rune('a' + i)) }

// Do sends a command to a master directly.
func (c *Cluster) Do(i int, args ...any) any {
	c.T.Helper()
	reply, err := c.Servers[i].Do(args...)
	if err != nil {
		c.T.Fatalf("master %s: %v: %v", name(i), args, err)
	}
	return reply
}

// Calls adds up how often the masters have executed a command.
func (c *Cluster) Calls(command string) (n int64) {
	c.T.Helper()
	for i := range c.Servers {
		_, stats, _ := strings.Cut(c.Do(i, "INFO", "commandstats").(string), "cmdstat_"+command+":calls=")
		calls, _, _ := strings.Cut(stats, ",")
		one, _ := strconv.ParseInt(calls, 10, 64)
		n += one
	}
	return n
}

// Daemon starts a daemon and returns when every master votes. connect sets what is above its
// leases.
func (c *Cluster) Daemon(connect func(*Daemon), traits ...Trait) *Daemon {
	c.T.Helper()
	if !c.bootstrapped {
		c.bootstrapped = true
		if err := setup.Bootstrap(c.T.Context(), c.options(), setup.BootstrapTerms{}, c.T.Output()); err != nil {
			c.T.Fatal(err)
		}
	}
	d := start(c.T, c.options(), connect, traits)
	for i := range c.Servers {
		d.Await(i, "voting")
	}
	d.Idle()
	return d
}

// options of a daemon on all masters.
func (c *Cluster) options() pool.Options {
	o := pool.Options{MaxTTL: c.maxTTL, MasterTimeout: masterTimeout, Logger: logger(c.T)}
	for i, s := range c.Servers {
		o.Masters = append(o.Masters, pool.Master{Name: name(i), Network: "tcp", Address: s.Addr()})
	}
	return o
}

// logger writes into the test's own log, which is shown if it fails.
func logger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// CountLines is how many lines of a text contain a word.
func CountLines(text, with string) (n int) {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.Contains(line, with) {
			n++
		}
	}
	return n
}

// Eventually polls until something is true.
func Eventually(t *testing.T, what string, true func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(Patience); !true(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("within %v it did not come about that %s", Patience, what)
		}
	}
}

// Receive waits for an answer.
func Receive[A any](t *testing.T, answer <-chan A) A {
	t.Helper()
	select {
	case a := <-answer:
		return a
	case <-time.After(Patience):
		t.Fatal("an operation was never answered")
		panic("unreachable")
	}
}
