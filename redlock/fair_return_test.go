package redlock

// fair_return_test.go: places in the queue of a master that was away. Here no wait queue's
// timer ever fires, so that nothing but the reconnect brings them back.

import (
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
)

// Times of package wait, which has no names for them outside. The tests check that such timers
// are held.
const (
	refreshInterval = time.Second
	ticketTimeout   = 3 * refreshInterval
)

// returning holds the timers of lines.
func returning(d *daemon, _ *pool.Options) { d.clock.hold(refreshInterval) }

// newReturningDaemon is one on embedded masters.
func newReturningDaemon(t *testing.T) (*pureDaemon, *clock) {
	t.Helper()
	c := &clock{Clock: pool.SystemClock()}
	c.hold(refreshInterval)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	p, err := pool.New(pool.Options{Embedded: 5, MasterTimeout: time.Minute, Late: 5 * time.Second, Clock: c, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	l, err := New(p, Options{Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	return &pureDaemon{l, t}, c
}

// places are the waiters of a key on one master, in their order.
func (d *pureDaemon) places(lane int, key string) []string {
	var all map[string]float64
	var out []string
	master := d.engine.Pool.Embedded().At(lane)
	master.Turn(func() { all, _ = master.Server().SortedSet("redlockd:q:" + key) }) // no such key: nobody
	for id := range all {
		out = append(out, id)
	}
	slices.SortFunc(out, func(a, b string) int { return int(all[a] - all[b]) })
	return out
}

// inLine is how many wait in a database of this daemon and are established.
func (d *pureDaemon) inLine(db int) int {
	_, all := d.Waiting(db, func(Key) bool { return true }, 10)
	return all
}

func TestFair_AMasterThatForgotHasThePlacesAgainBeforeTheNextKeep(t *testing.T) {
	t.Parallel()
	d, clock := newReturningDaemon(t)
	for _, db := range []int{0, 3} {
		d.take(LockRequest{DB: db, Key: "k"})
	}
	out := make(chan waited, 4) // every answer
	for _, db := range []int{0, 3} {
		for range 2 {
			d.waitFor("waits", LockRequest{DB: db, Key: "k", Fair: true}, out)
		}
	}
	eventually(t, "all of them stand in line", func() bool { return d.inLine(0) == 2 && d.inLine(3) == 2 })
	if n := clock.keptTimers(); n < 2 {
		t.Errorf("%d timers of wait queues are held, want 2 at least", n)
	}
	d.quiet() // every master has the places that it accepted
	var want []string
	for lane := range 5 {
		if at := d.places(lane, "k"); len(at) == 2 {
			want = at // a master that accepted both, in the order of all masters
		}
	}
	forgets := d.engine.Pool.Embedded().At(4)
	forgets.Turn(forgets.Server().FlushAll)
	eventually(t, "the master that forgot has them again, in their order", func() bool {
		return len(want) == 2 && slices.Equal(d.places(4, "k"), want)
	})
	d.EndWaits()
	for range 4 {
		<-out
	}
}

// The price: a command for each key, in the first flush that is no admission.
func TestFair_TheReturnOfAMasterCostsOneCommandAKeyInOneFlush(t *testing.T) {
	c := newCluster(t, 3, long)
	p := &tap{}
	d := c.daemon(returning, p.tapped)
	for _, key := range []string{"a", "b"} {
		d.take(Key(key), long)
		d.stands(key, LockRequest{})
		d.stands(key, LockRequest{})
	}
	d.stands("b", LockRequest{More: []Key{"a"}})
	d.idle()
	seen := len(p.to("c"))
	c.servers[2].RestartEmpty()
	eventually(t, "the places are there again", func() bool { return c.queued(2, "a") == 3 && c.queued(2, "b") == 3 })
	word := "EVALSHA " + d.engine.Scripts.Keep
	for _, flush := range p.to("c")[seen:] {
		if n := len(flush); n > 0 && strings.HasPrefix(flush[0], word) {
			keeps := slices.DeleteFunc(slices.Clone(flush), func(one string) bool { return !strings.HasPrefix(one, word) })
			if len(keeps) != 3 {
				t.Errorf("%d commands for two keys and both of them together: %q", len(keeps), keeps)
			}
			return
		}
	}
	t.Error("no flush begins with the places")
}

// A daemon that was paused while its masters went on counts as dead. Its own heartbeat shows
// this when the timers of its wait queues do not: they may count by another clock.
func TestFair_ADaemonThatWasPausedHasItsPlacesAgainBeforeTheNextRefresh(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon(returning)
	d.take("k", long)
	d.stands("k", LockRequest{})
	for i := range c.servers {
		c.do(i, "DEL", "redlockd:q:k", "redlockd:qx:k", "redlockd:qw:k")
	}
	if d.clock.keptTimers() == 0 {
		t.Fatal("no timer of a wait queue is held")
	}
	d.clock.ahead.Add(int64(ticketTimeout))
	eventually(t, "it stands in the queues again", func() bool {
		return c.queued(0, "k") == 1 && c.queued(1, "k") == 1 && c.queued(2, "k") == 1
	})
}
