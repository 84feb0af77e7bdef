package redlock

// harness_test.go holds what the tests share: real redis-servers, and daemons that serve them.
// A daemon here is what a process is in production: a Locker with lanes, clock and records of
// its own, without knowledge of the others.

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/faulty"
	"redlockd/redlock/redlocktest"
)

const (
	patience = redlocktest.Patience
	late     = redlocktest.MasterTimeout
	// impatient is the master timeout of daemons that are to run into it.
	impatient = 500 * time.Millisecond
	long      = redlocktest.Long
)

var on, endOn = redlocktest.On, redlocktest.EndOn

// cluster is a group of masters. It is bootstrapped for its first daemon.
type cluster struct {
	t       *testing.T
	servers redlocktest.Masters
	maxTTL  time.Duration
	maxKeep time.Duration // 0 = that of all tests
	born    bool
	found   string // keys that empty found last
}

func newCluster(t *testing.T, n int, maxTTL time.Duration, args ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, servers: faulty.StartGroup(t, n, args...), maxTTL: maxTTL}
	t.Cleanup(func() {
		if t.Failed() && c.found != "" {
			t.Logf("not empty: %s", c.found)
		}
	})
	return c
}

// newClockCluster has masters whose clocks can be stepped.
func newClockCluster(t *testing.T, n int, maxTTL time.Duration) *cluster {
	t.Helper()
	return &cluster{t: t, servers: faulty.WithClock().StartGroup(t, n), maxTTL: maxTTL}
}

// age is how old a memory must be before the master votes.
func (c *cluster) age() time.Duration { return c.maxTTL + c.maxTTL/100 + 2*time.Second }

// do sends to a master directly, past everything that is being tested.
func (c *cluster) do(i int, args ...any) any {
	c.t.Helper()
	return c.servers.Do(c.t, i, args...)
}

// copies are the tokens that the masters hold for a key, "" for none.
func (c *cluster) copies(key string) []string {
	c.t.Helper()
	var all []string
	for i := range c.servers {
		token, _ := c.do(i, "GET", key).(string)
		all = append(all, token)
	}
	return all
}

// ends is when a master's copy expires, ms of its clock; -2 without a copy.
func (c *cluster) ends(i int, key string) int64 {
	c.t.Helper()
	return endOn(c.t, c.servers[i], key)
}

// identity is what a master's seal holds, as words: run_id, incarnation, base, …
func (c *cluster) identity(i int) []string {
	c.t.Helper()
	members := c.do(i, "ZRANGE", "redlockd:seal", 0, -1).([]any)
	if len(members) != 1 {
		c.t.Fatalf("master %s: redlockd:seal holds %d members, want 1: %v", name(i), len(members), members)
	}
	return strings.SplitN(members[0].(string), " ", 5)
}

// raise puts a master's register at least at a value.
func (c *cluster) raise(i int, register int64) {
	c.t.Helper()
	identity := strings.Join(c.identity(i), " ")
	c.do(i, "ZADD", "redlockd:seal", "XX", "GT", register, identity)
}

// register of a master, 0 before it has one.
func (c *cluster) register(i int) (score int64) {
	c.t.Helper()
	if pair := c.do(i, "ZRANGE", "redlockd:seal", 0, -1, "WITHSCORES").([]any); len(pair) == 2 {
		score, _ = strconv.ParseInt(pair[1].(string), 10, 64)
	}
	return score
}

// empty reports whether nothing but seals and records is left on these masters.
func (c *cluster) empty(masters ...int) bool {
	c.t.Helper()
	for _, i := range masters {
		keys := slices.DeleteFunc(c.servers[i].Keys(), func(key string) bool { return key == "redlockd:acked" || key == configurationKey })
		if len(keys) != 1 || keys[0] != "redlockd:seal" {
			c.found = fmt.Sprintf("%s has %q", name(i), keys)
			return false
		}
	}
	return true
}

func name(i int) string { return redlocktest.Name(i) }

// daemon is one Locker with its own connections to all masters.
type daemon struct {
	*Locker
	t      *testing.T
	relays []*faulty.Relay // one before each master, nil unless relayed
	clock  *redlocktest.Clock

	lockInfo   bool
	maxWaiters int          // 0 = the default
	ownership  Ownership    // nil = the group has all keys
	logger     *slog.Logger // of the Locker; nil = the pool's
}

// trait is how a daemon differs from the usual.
type trait func(*daemon, *pool.Options)

// relayed puts relays of its own between this daemon and the masters.
func relayed(d *daemon, o *pool.Options) { d.relays = redlocktest.Relays(d.t, o) }

// blind holds the heartbeats: the daemon learns from its operations' flushes
// alone, so that no heartbeat can be what saved them.
func blind(d *daemon, _ *pool.Options) { d.clock.Hold(heartbeat) }

// lockInfo notes every holder.
func lockInfo(d *daemon, _ *pool.Options) { d.lockInfo = true }

// logsTo gives the Locker a logger of its own.
func logsTo(logger *slog.Logger) trait { return func(d *daemon, _ *pool.Options) { d.logger = logger } }

// options of a daemon on all masters.
func (c *cluster) options() pool.Options {
	o := c.servers.Options(c.t, c.maxTTL)
	o.MaxKeep = cmp.Or(c.maxKeep, o.MaxKeep)
	return o
}

// daemon starts one and returns when every master votes.
func (c *cluster) daemon(traits ...trait) *daemon {
	c.t.Helper()
	if !c.born {
		c.born = true
		if err := bootstrap(c, false, traits...); err != nil {
			c.t.Fatal(err)
		}
	}
	d := c.startDaemon(traits...)
	for i := range c.servers {
		d.await(i, "voting")
	}
	d.idle()
	return d
}

// stranger starts a daemon whatever the masters think of it.
func (c *cluster) startDaemon(traits ...trait) *daemon {
	c.t.Helper()
	d := &daemon{t: c.t, clock: redlocktest.NewClock()}
	o := c.options()
	o.Clock = d.clock
	for _, change := range traits {
		change(d, &o)
	}
	p, err := pool.New(o)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(p.Close)
	if d.Locker, err = New(p, Options{KeyPrefix: o.KeyPrefix, Logger: cmp.Or(d.logger, o.Logger), LockInfo: d.lockInfo, MaxWaiters: d.maxWaiters, Ownership: d.ownership}); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = d.Close(time.Second) }) // what a test broke on purpose may stay unanswered
	return d
}

// state is what the daemon thinks of a master, and why.
func (d *daemon) state(i int) (state, why string) {
	s := d.Masters(0)[i]
	return s.State, s.Detail
}

// await waits until the daemon thinks so of a master.
func (d *daemon) await(i int, want string) {
	d.t.Helper()
	redlocktest.Await(d.t, d.engine, i, want)
}

// awaitProcess waits until the daemon is admitted to the process that is there now.
func (d *daemon) awaitProcess(i int, s *faulty.Server) {
	d.t.Helper()
	eventually(d.t, "a connection to the new process of master "+name(i), func() bool { return d.knows(i, s) })
}

// knows reports whether the daemon is admitted to the process that is there now.
func (d *daemon) knows(i int, s *faulty.Server) bool {
	m := d.Masters(0)[i]
	info, err := s.Do("INFO", "server")
	text, _ := info.(string)
	return err == nil && (m.State == "voting" || m.State == "quarantined") &&
		strings.Contains(text, "run_id:"+m.RunID)
}

// idle waits until nothing is on its way to a master, not even the heartbeat
// that follows an admission.
func (d *daemon) idle() {
	d.t.Helper()
	redlocktest.Idle(d.t, d.engine)
}

// settled waits until the daemon has nothing left to send to these masters.
func (d *daemon) settled(masters ...int) {
	d.t.Helper()
	redlocktest.Settled(d.t, d.engine, masters...)
}

func eventually(t *testing.T, what string, true func() bool) {
	t.Helper()
	redlocktest.Eventually(t, what, true)
}

func receive[A any](t *testing.T, answer <-chan A) A {
	t.Helper()
	return redlocktest.Receive(t, answer)
}

// beforeItsTime is a limit far below a long lease.
func beforeItsTime() time.Duration {
	if redlocktest.RuleBroken {
		return 5 * time.Second
	}
	return patience
}

// sleepUntil lets real time pass where the masters' clocks are what is waited for.
func sleepUntil(t *testing.T, moment time.Time, why string) {
	t.Helper()
	t.Logf("%v pass until %s", time.Until(moment).Round(time.Millisecond), why)
	time.Sleep(time.Until(moment))
}

// noQuorum wants an outcome that is unknown, in these words.
func noQuorum(t *testing.T, err error, words ...string) *NoQuorum {
	t.Helper()
	var unknown *NoQuorum
	if !errors.As(err, &unknown) {
		t.Fatalf("answered %v, want NoQuorum", err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("NoQuorum says %q, want it to name %q", err, word)
		}
	}
	if unknown.Answered+len(unknown.Missing) != unknown.Total {
		t.Errorf("NoQuorum says %q: %d answered and %d are named, of %d", err, unknown.Answered, len(unknown.Missing), unknown.Total)
	}
	return unknown
}

func key(i int) Key { return Key(fmt.Sprint("key-", i)) }

// saysWrongType reports whether a master found data of another type.
func saysWrongType(r pool.Reply) bool {
	return r.Err != nil && strings.Contains(r.Err.Error(), "WRONGTYPE")
}

// slotOf is the slot that a token is tried with first.
func slotOf(token Token, limit int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(token))
	return int(h.Sum32()%uint32(limit)) + 1
}
