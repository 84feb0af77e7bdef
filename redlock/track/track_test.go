package track

import (
	"fmt"
	"math/bits"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
	"redlockd/redlock/redlocktest"
)

func TestMain(m *testing.M) {
	// ants starts a pool of its own when it is imported.
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

// long is a lease that no test outlives.
const long = redlocktest.Long

// daemon is leases, and what is tracked.
type daemon struct {
	*redlocktest.Daemon
	*Tracks
}

func (d *daemon) connect(base *redlocktest.Daemon) {
	d.Daemon, d.Tracks = base, New(base.Engine, base.Leases)
	base.Connect(func(*engine.Batch, int, engine.Key) {}, redlocktest.NoChanges{})
	base.T.Cleanup(d.End)
}

func newDaemon(c *redlocktest.Cluster, traits ...redlocktest.Trait) *daemon {
	c.T.Helper()
	d := &daemon{}
	c.Daemon(d.connect, traits...)
	return d
}

// reports are those of one client: false for a change, true if the masters could not tell.
type reports chan bool

// sees tracks a key.
func (d *daemon) sees(key engine.Key, seen Seen) (got reports, stop func()) {
	got = make(reports, 2)
	return got, d.Track(0, key, seen, func(lost bool) { got <- lost })
}

// seesNow reads the key and tracks that.
func (d *daemon) seesNow(key engine.Key) (got reports, stop func()) {
	d.T.Helper()
	seen := make(chan Seen, 1)
	d.View(nil, 0, key, func(v lease.View, err error) {
		if err != nil {
			d.T.Error(err)
		}
		seen <- Seen{View: v}
	})
	return d.sees(key, redlocktest.Receive(d.T, seen))
}

// armed waits until changes of the key are announced, by that many masters.
func (d *daemon) armed(key engine.Key, masters int) {
	d.T.Helper()
	redlocktest.Eventually(d.T, "the key is watched", func() bool {
		d.Tracks.mu.Lock()
		defer d.Tracks.mu.Unlock()
		e := d.entries[dbKey{0, key}]
		return e != nil && e.phase == armed && e.early == 0 && e.changed == 0 && bits.OnesCount16(e.tracked) >= masters
	})
}

// one wants one report, and no more.
func (r reports) one(t *testing.T, what string, lost bool) {
	t.Helper()
	if so := redlocktest.Receive(t, r); so != lost {
		t.Errorf("%s: lost = %t, want %t", what, so, lost)
	}
	r.none(t, what)
}

func (r reports) none(t *testing.T, what string) {
	t.Helper()
	select {
	case lost := <-r:
		t.Errorf("%s: a report (lost = %t)", what, lost)
	default:
	}
}

// left wants nothing tracked.
func (d *daemon) left() {
	d.T.Helper()
	if n := d.Tracked(); n != 0 {
		d.T.Errorf("%d keys are left", n)
	}
}

// Whatever ends what was seen is reported once, also through another daemon and by hand.
func TestTrack_ReportsEveryChangeOnce(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 5, long)
	one, two := newDaemon(c), newDaemon(c)
	for what, change := range map[string]func(token engine.Token){
		"released": func(token engine.Token) { two.Free("k", token) },
		"deleted by hand": func(engine.Token) {
			for i := range c.Masters {
				c.Do(i, "DEL", "k")
			}
		},
		"another's": func(engine.Token) {
			for i := range c.Masters {
				c.Do(i, "SET", "k", "another", "PX", 60_000)
			}
		},
		"extended": func(token engine.Token) {
			if _, err := two.Prolong(lease.ExtendRequest{Key: "k", Token: token, TTL: long}); err != nil {
				t.Error(err)
			}
		},
		"shortened by hand": func(engine.Token) {
			for i := range c.Masters {
				c.Do(i, "PEXPIRE", "k", 30_000)
			}
		},
		"expired": func(engine.Token) {
			for i := range c.Masters {
				c.Do(i, "PEXPIRE", "k", 1)
			}
		},
	} {
		for i := range c.Masters {
			c.Do(i, "DEL", "k")
		}
		held := two.Get(lease.LockRequest{Key: "k", TTL: time.Minute})
		got, _ := one.seesNow("k")
		taken, _ := one.sees("k", Seen{View: lease.View{Kind: "string", Value: held.Token}, Lease: held.Validity()})
		refused, _ := one.sees("k", Seen{Refused: true})
		one.armed("k", 5)
		got.none(t, what)
		change(held.Token)
		got.one(t, what, false)
		taken.one(t, what, false)
		refused.one(t, what, false)
		one.left()
	}
	free, _ := one.seesNow("free")
	one.armed("free", 5)
	two.Get(lease.LockRequest{Key: "free", TTL: long})
	free.one(t, "taken", false)
	one.left()
}

// What has changed before the masters announce changes was never announced.
func TestTrack_ComparesWhatWasSeenWithWhatTheMastersShow(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, long)
	one := newDaemon(c)
	held := one.Get(lease.LockRequest{Key: "k", TTL: time.Minute})
	same, stop := one.seesNow("k")
	for again := range 2 { // the second time the key is watched already
		for what, seen := range map[string]Seen{
			"free":           {View: lease.View{Kind: "none"}},
			"another's":      {View: lease.View{Kind: "string", Value: "another"}},
			"a longer lease": {View: lease.View{Kind: "string", Value: held.Token}, Lease: 2 * time.Minute},
			"not decided":    {Undecided: true},
		} {
			got, _ := one.sees("k", seen)
			got.one(t, what, false)
		}
		if again == 0 {
			one.armed("k", 3)
		}
	}
	free, _ := one.sees("free", Seen{Refused: true})
	free.one(t, "refused, and free by now", false)
	same.none(t, "the same")
	stop()
	one.left()
}

// The last copies of a grant, or the loss of a master, change nothing for a client.
func TestTrack_AMinorityIsNoReport(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 5, long)
	one := newDaemon(c)
	held := one.Get(lease.LockRequest{Key: "k", TTL: long})
	one.Idle()
	got, stop := one.seesNow("k")
	one.armed("k", 5)
	for i := range 2 {
		c.Do(i, "PEXPIRE", "k", long.Milliseconds())
	}
	for range 3 { // rounds of the watch
		one.Tracks.mu.Lock()
		before := one.entries[dbKey{0, "k"}].round
		one.Tracks.mu.Unlock()
		redlocktest.Eventually(t, "the watch begins anew", func() bool {
			one.Tracks.mu.Lock()
			defer one.Tracks.mu.Unlock()
			return one.entries[dbKey{0, "k"}].round > before
		})
		one.armed("k", 3)
		got.none(t, "two of five")
		c.Do(0, "PEXPIRE", "k", long.Milliseconds())
	}
	for i := range 2 {
		c.Masters[i].Kill()
	}
	one.armed("k", 3)
	got.none(t, "two of five are gone")
	one.Free("k", held.Token)
	got.one(t, "released with three masters", false)
	stop()
	one.left()
}

// Without a quorum nothing can be said of any key; of what was undecided there is nothing to say.
func TestTrack_LossOfTheQuorumIsReported(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, long)
	one := newDaemon(c)
	one.Get(lease.LockRequest{Key: "k", TTL: long})
	got, _ := one.seesNow("k")
	one.armed("k", 3)
	for i := range 2 {
		c.Masters[i].Stop()
	}
	// The connections stay open: nothing but the next reading shows it.
	undecided, _ := one.sees("k", Seen{Undecided: true})
	for got, ended := got, false; !ended; {
		select {
		case lost := <-got:
			if ended = true; !lost {
				t.Error("a change was reported, not the loss")
			}
		case <-time.After(redlocktest.Patience):
			t.Fatal("no report")
		}
	}
	undecided.none(t, "undecided, without a quorum")
	for i := range 2 {
		c.Masters[i].Cont()
	}
	undecided.one(t, "undecided, with a quorum", false)
	one.left()
}

// Masters in this process announce nothing: the key is read again and again.
func TestTrack_WithoutAnnouncementsTheKeyIsPolled(t *testing.T) {
	t.Parallel()
	d := &daemon{}
	redlocktest.Embedded(t, d.connect)
	held := d.Get(lease.LockRequest{Key: "k", TTL: long})
	got, _ := d.seesNow("k")
	d.armed("k", 0)
	got.none(t, "held")
	d.Free("k", held.Token)
	got.one(t, "released", false)
	short, _ := d.seesNow("k")
	d.Get(lease.LockRequest{Key: "k", TTL: long})
	short.one(t, "taken", false)
	d.left()
}

// A lease ends by itself.
func TestTrack_ReportsTheEndOfALease(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, long)
	one := newDaemon(c)
	one.Get(lease.LockRequest{Key: "k", TTL: time.Second})
	got, _ := one.seesNow("k")
	got.one(t, "expired", false)
	one.left()
}

// A key costs the masters the same, however many clients have seen it.
func TestTrack_ClientsShareTheWatchOfAKey(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, long)
	one := newDaemon(c)
	held := one.Get(lease.LockRequest{Key: "k", TTL: long})
	first, _ := one.seesNow("k")
	one.armed("k", 3)
	before := c.Calls(t, "client|caching")
	all := []reports{first}
	for range 100 {
		got, _ := one.sees("k", Seen{Refused: true})
		all = append(all, got)
	}
	one.armed("k", 3)
	if n := c.Calls(t, "client|caching") - before; n > 6 {
		t.Errorf("100 clients more were %d queries more", n)
	}
	one.Free("k", held.Token)
	for _, got := range all {
		got.one(t, "released", false)
	}
	one.left()
}

// After its end a client receives nothing, nor after that of the daemon.
func TestTrack_EndIsSilent(t *testing.T) {
	t.Parallel()
	d := &daemon{}
	redlocktest.Embedded(t, d.connect, func(_ *redlocktest.Daemon, o *pool.Options) { o.Databases = 2 })
	got, stop := d.seesNow("k")
	_, other := d.sees("other", Seen{Refused: true})
	stop()
	stop()
	d.End()
	other()
	late, _ := d.sees("k", Seen{})
	got.none(t, "stopped")
	late.none(t, "after the end")
	d.left()
}

// The memory of a tracked key counts for its client; package commands adds its own to this.
func TestTrack_MemoryOfAKey(t *testing.T) {
	c := redlocktest.NewCluster(t, 5, long)
	one := newDaemon(c)
	// A few at a time: the buffers for what is on its way do not grow any more then.
	track := func(first, last int) {
		for i := first; i < last; i++ {
			one.sees(engine.Key(fmt.Sprintf("key-number-%06d", i)), Seen{View: lease.View{Kind: "none"}})
			if i%100 != 99 {
				continue
			}
			redlocktest.Eventually(t, "all keys are watched", func() bool {
				one.Tracks.mu.Lock()
				defer one.Tracks.mu.Unlock()
				for _, e := range one.entries {
					if e.phase != armed || bits.OnesCount16(e.tracked) < 3 {
						return false
					}
				}
				return true
			})
			one.Idle()
		}
	}
	inUse := func() int {
		runtime.GC()
		runtime.GC() // the second empties the pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	const keys = 2000
	track(0, keys)
	before := inUse()
	track(keys, 2*keys)
	each := (inUse() - before) / keys
	if t.Logf("%d bytes a key", each); each > 1200 {
		t.Errorf("a tracked key takes %d bytes, allowed are 1200", each)
	}
}
