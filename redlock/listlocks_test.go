package redlock

// listlocks_test.go: the walk over all locks.

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redlockd/pool"
)

// keysPerInspect is how many keys of a walk one command inspects.
const keysPerInspect = 16

// listed is the outcome of one step.
type listed struct {
	page LockPage
	err  error
}

func (d *daemon) list(r Listing) (LockPage, error) {
	d.t.Helper()
	if r.Wanted == nil {
		r.Wanted = func(Key) bool { return true }
	}
	answer := make(chan listed, 1) // 1: its one answer
	d.ListLocks(r, func(p LockPage, err error) { answer <- listed{p, err} })
	a := receive(d.t, answer)
	return a.page, a.err
}

// walkOver takes steps until the end, each through the next daemon; between them, if it is not
// nil, something else happens. It returns how often each key was listed.
func walkOver(t *testing.T, daemons []*daemon, r Listing, between func(step int)) map[Key]int {
	t.Helper()
	told := map[Key]int{}
	for step := 0; ; step++ {
		page, err := daemons[step%len(daemons)].list(r)
		if err != nil {
			t.Fatalf("step %d, cursor %d: %v", step, r.Cursor, err)
		}
		for _, one := range page.Locks {
			told[one.Key]++
		}
		if page.Cursor == 0 {
			return told
		}
		if r.Cursor = page.Cursor; step > 100_000 {
			t.Fatal("the walk does not end")
		}
		if between != nil {
			between(step)
		}
	}
}

// crowd has a master make, or delete, many strings that end in ten minutes:
// those whose number, divided by three, does not leave the rest without.
func (c *cluster) crowd(i int, prefix string, from, to, without int, make bool) {
	c.t.Helper()
	command := "redis.call('DEL', KEYS[1] .. n)"
	if make {
		command = "redis.call('SET', KEYS[1] .. n, 'token-' .. n, 'PX', 600000)"
	}
	for ; from < to; from += 5000 {
		c.do(i, "EVAL", "for n = ARGV[1], ARGV[2] do if n % 3 ~= tonumber(ARGV[3]) then "+command+" end end", 1, prefix,
			from, min(from+5000, to)-1, without)
	}
}

// Each of the locks is held by two of three masters, in all three combinations,
// while four times as many come and go, so that the masters' hash tables grow and
// shrink, and while two daemons take the steps in turn.
func TestListLocks_MissesNoLockThatIsHeldThroughout(t *testing.T) {
	c := newCluster(t, 3, long)
	daemons := []*daemon{c.daemon(), c.daemon()}
	held := 20_000
	if raceDetector {
		held = 8_000
	}
	for i := range c.servers {
		c.crowd(i, "held-", 0, held, i, true)
	}
	r := Listing{Count: 1000}
	seen := 0
	r.Wanted = func(k Key) bool { seen++; return strings.HasPrefix(string(k), "held-") }
	commands := func() (n int64) {
		for _, d := range daemons {
			n += d.engine.Pool.Counters().Commands
		}
		return n
	}
	before := commands()
	grown := false
	told := walkOver(t, daemons, r, func(step int) {
		if after := commands(); after-before > int64(5+3*(seen/keysPerInspect+5)) || seen > 8*r.Count {
			t.Fatalf("step %d asked %d commands of the masters and looked at %d keys", step, after-before, seen)
		}
		seen = 0
		if step%16 == 4 {
			grown = !grown
			for i := range c.servers {
				c.crowd(i, "passing-", 0, 4*held, -1, grown)
			}
		}
		before = commands()
	})
	missing, most := 0, 0
	for n := range held {
		times := told[Key(fmt.Sprint("held-", n))]
		most = max(most, times)
		if times == 0 {
			missing++
		}
	}
	if missing > 0 || len(told) != held {
		t.Errorf("%d of %d locks that were held throughout are missing; %d keys were told", missing, held, len(told))
	}
	t.Logf("a key was told %d times at most", most)
}

// What the first masters leave open the others decide: in each combination a
// lock has a quorum or lacks one.
func TestListLocks_QueriesMoreMastersUntilTheyDecide(t *testing.T) {
	t.Parallel()
	const n = 5
	c := newCluster(t, n, long)
	d := c.daemon()
	quorate := func(lanes int) bool { return bits.OnesCount(uint(lanes)) >= d.engine.Pool.Quorum() }
	name := func(lanes int) Key { return Key(fmt.Sprintf("on-%05b", lanes)) }
	for lanes := range 1 << n {
		for i := range n {
			if lanes>>i&1 != 0 {
				c.do(i, "SET", string(name(lanes)), "the-token-of-this-lock", "PX", 600_000)
			}
		}
	}
	found := map[Key]LockView{}
	r := Listing{Count: 1000}
	for {
		page, err := d.list(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range page.Locks {
			found[one.Key] = one.View
		}
		if r.Cursor = page.Cursor; r.Cursor == 0 {
			break
		}
	}
	for lanes := range 1 << n {
		v, told := found[name(lanes)]
		if told != quorate(lanes) || told && (v.State != LockHeld || v.Count != 1 || v.Left <= 0) {
			t.Errorf("%s: told %t, %+v", name(lanes), told, v)
		}
	}
}

// More than a quorum need not be looked at where masters agree.
func TestListLocks_InspectsNoMoreMastersThanItTakes(t *testing.T) {
	t.Parallel()
	const n, locks = 5, 3 * keysPerInspect
	c := newCluster(t, n, long)
	d := c.daemon()
	for i := range n {
		c.crowd(i, "held-", 0, locks, -1, true)
	}
	before := d.engine.Pool.Counters().Commands
	told := walkOver(t, []*daemon{d}, Listing{Count: 1000}, nil)
	// Each of three masters is walked with one SCAN, and its keys take three looks
	// at three masters.
	const want = 3 * (1 + 3*3)
	if got := d.engine.Pool.Counters().Commands - before; len(told) != locks || got > want {
		t.Errorf("%d locks of %d were told with %d commands, want at most %d", len(told), locks, got, want)
	}
}

// scanObserver counts, between a daemon and its masters, how many of these are sent keys to
// inspect at one time, and how often the walk rests.
type scanObserver struct {
	pool.Clock
	looks atomic.Int64 // commands
	under atomic.Int64 // of them at this moment
	most  atomic.Int64
	rests atomic.Int64
	look  atomic.Pointer[string] // the script; nil before the daemon is there
}

func (o *scanObserver) watches(d *daemon, options *pool.Options) {
	o.Clock, options.Clock = d.clock, o
	hooked(options, o.exchange)
}

func (o *scanObserver) AfterFunc(d time.Duration, f func()) pool.Timer {
	if d <= 2*time.Millisecond {
		o.rests.Add(1)
	}
	return o.Clock.AfterFunc(d, f)
}

func (o *scanObserver) exchange(_ string, commands []pool.Command, exchange func([]pool.Command) []pool.Reply) []pool.Reply {
	looks := int64(0)
	for _, c := range commands {
		if script := o.look.Load(); script != nil && slices.Contains(c.Args, *script) {
			looks++
		}
	}
	o.looks.Add(looks)
	if under := o.under.Add(looks); under > o.most.Load() {
		o.most.Store(under)
	}
	defer o.under.Add(-looks)
	return exchange(commands)
}

// A client that wants a lock meanwhile has a quorum of masters, and a machine, that the
// walk does not keep busy.
func TestListLocks_InspectsOneMasterAtATimeAndRests(t *testing.T) {
	const n, locks = 5, 3 * keysPerInspect
	c := newCluster(t, n, long)
	var o scanObserver
	d := c.daemon(o.watches)
	o.look.Store(&d.engine.Scripts.Inspect)
	for i := range n {
		c.crowd(i, "held-", 0, locks, -1, true)
	}
	before := o.rests.Load()
	told := walkOver(t, []*daemon{d}, Listing{Count: 1000}, nil)
	// Three masters are walked; the keys of each take three looks at three masters.
	if len(told) != locks || o.looks.Load() != 3*3*3 || o.most.Load() != 1 {
		t.Errorf("%d locks of %d were told with %d looks, %d at a time; want 27, one at a time", len(told), locks, o.looks.Load(), o.most.Load())
	}
	if rests := o.rests.Load() - before; rests < 3*3 {
		t.Errorf("%d rests, want one after each of 9 groups of keys", rests)
	}
}

func TestListLocks_ShowsEveryModeAndNeverBookkeepingOrData(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	d.get(LockRequest{Key: "writer", Requester: &Requester{Meta: "noted"}})
	d.get(LockRequest{Key: "readers", Mode: Readers})
	d.get(LockRequest{Key: "readers", Mode: Readers})
	d.get(LockRequest{Key: "permits", Mode: PermitsOf(5)})
	d.get(LockRequest{Key: "one", More: []Key{"two"}})
	d.find(WorkRequest{Key: "report", Timeout: 20 * time.Second, Max: 2}, WorkAcquired, 1)
	c.do(0, "SET", "stray", "a-copy-of-no-quorum", "PX", 20_000)
	for i := range c.servers {
		c.do(i, "SET", "data", "for ever")
		c.do(i, "HSET", "record", "f", "v")
		c.do(i, "SET", strings.Repeat("k", 512+1), "too long a name", "PX", 20_000)
	}
	// Waiters in a queue of all daemons have entries in a zset that ends with the last of them.
	leave := d.Wait(nil, LockRequest{Key: "writer", TTL: long, Fair: true, Wait: time.Minute}, func(Grant, error) {})
	defer leave()
	eventually(t, "it is in the queue", func() bool { return d.see("writer").Queued == 1 })
	found := map[Key]LockView{}
	page, err := d.list(Listing{Count: 1000})
	for ; err == nil; page, err = d.list(Listing{Count: 1000, Cursor: page.Cursor}) {
		for _, one := range page.Locks {
			found[one.Key] = one.View
		}
		if page.Cursor == 0 {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[Key]LockView{
		"writer": {Mode: Exclusive, Count: 1}, "readers": {Mode: Shared, Count: 2}, "permits": {Mode: Permits, Count: 1, Limit: 5},
		"one": {Mode: Exclusive, Count: 1}, "two": {Mode: Exclusive, Count: 1},
	} {
		v, ok := found[key]
		if !ok || v.State != LockHeld || v.Mode != want.Mode || v.Count != want.Count || v.Limit != want.Limit || v.Left <= 0 {
			t.Errorf("%s: %+v", key, v)
		}
		delete(found, key)
	}
	if len(found) > 0 {
		t.Errorf("also told: %v", found)
	}
}

func TestListLocks_TakesTheNamesThatAreWanted(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	for _, key := range []Key{"a*b", "a*c", "axb", "b"} {
		d.get(LockRequest{Key: key})
	}
	daemons := []*daemon{d}
	told := walkOver(t, daemons, Listing{Count: 10, Prefix: "a*", Wanted: func(k Key) bool { return k != "a*c" }}, nil)
	if len(told) != 1 || told["a*b"] == 0 {
		t.Errorf("told %v, want a*b", told)
	}
}

// What a walk has seen of a process that is gone is worth nothing: its masters
// are the others.
func TestListLocks_GoesOnWhenAMasterEndsOrForgets(t *testing.T) {
	t.Parallel()
	for what, happens := range map[string]func(*cluster){
		"is down":            func(c *cluster) { c.servers[0].Kill() },
		"has forgotten":      func(c *cluster) { c.servers[0].RestartEmpty() },
		"forgot and is back": func(c *cluster) { c.do(0, "FLUSHALL") },
	} {
		c := newCluster(t, 3, long)
		d := c.daemon()
		const held = 500
		for i := range c.servers {
			c.crowd(i, "held-", 0, held, -1, true)
		}
		told := walkOver(t, []*daemon{d}, Listing{Count: 10}, func(step int) {
			if step == 2 {
				happens(c)
			}
		})
		if len(told) != held {
			t.Errorf("a master %s: %d of %d locks were told", what, len(told), held)
		}
	}
}

// A durable master remembers everything over a restart, but walks in another
// order then: its cursor of before is worthless.
func TestListLocks_WalksAMasterAnewThatIsAnotherProcess(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long, durable...)
	d := c.daemon()
	const held = 600
	for i := range c.servers {
		c.crowd(i, "held-", 0, held, i, true)
	}
	told := walkOver(t, []*daemon{d}, Listing{Count: 10}, func(step int) {
		if step == 10 {
			c.servers[0].Restart()
			d.awaitProcess(0, c.servers[0])
			d.await(0, "voting")
		}
	})
	if len(told) != held {
		t.Errorf("%d of %d locks were told", len(told), held)
	}
}

func TestListLocks_ReportsThatTooFewMastersCanBeWalked(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	d.get(LockRequest{Key: "k"})
	c.servers[0].RestartEmpty()
	d.awaitProcess(0, c.servers[0])
	c.servers[1].Kill()
	d.await(1, "down")
	var err error
	for r := (Listing{Count: 10}); err == nil; {
		var page LockPage
		if page, err = d.list(r); err == nil && page.Cursor == 0 {
			t.Fatal("the walk has ended although one master is quarantined and one is down")
		}
		r.Cursor = page.Cursor
	}
	noQuorum(t, err, "begin again with cursor 0")
}

// No master reports the holder of a lock on masters that have forgotten: then the walk
// does not end as if it had reported every holder.
func TestListLocks_NeverEndsWhereMostMastersHaveForgotten(t *testing.T) {
	t.Parallel()
	for _, forgotten := range []int{3, 5} {
		c := newCluster(t, 5, long)
		d := c.daemon()
		d.get(LockRequest{Key: "k", Token: tokenA})
		d.idle()
		for i := range forgotten {
			c.servers[i].RestartEmpty()
			d.awaitProcess(i, c.servers[i])
		}
		for i := forgotten; i < 5; i++ {
			c.do(i, "DEL", "k")
		}
		d.idle()
		var err error
		for r := (Listing{Count: 10}); err == nil; {
			var page LockPage
			if page, err = d.list(r); err == nil && (page.Cursor == 0 || len(page.Locks) > 0) {
				t.Fatalf("forgotten by %d of 5: %+v", forgotten, page)
			}
			r.Cursor = page.Cursor
		}
		noQuorum(t, err, "begin again with cursor 0")
	}
}

// What is on none of the masters that were queried is no lock, however few of them
// could know.
func TestListLocks_ListsOnlyLocksThatAMasterShows(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, long)
	d := c.daemon()
	for i := range 5 {
		c.do(i, "SET", fmt.Sprint("data-", i), "for ever")
	}
	for _, i := range []int{3, 4} {
		c.servers[i].RestartEmpty()
		d.awaitProcess(i, c.servers[i])
	}
	if told := walkOver(t, []*daemon{d}, Listing{Count: 10}, nil); len(told) != 0 {
		t.Errorf("told %v", told)
	}
}

// A lock has copies on each of the three masters that a walk of five covers. One connection's walk
// lists it once, also while a master fails; what another daemon has listed is not known.
func TestListLocks_ListsEachLockOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, time.Minute)
	one, two := c.daemon(), c.daemon()
	const locks = 30
	for i := range locks {
		one.take(Key(fmt.Sprintf("k%d", i)), time.Minute)
	}
	most := func(told map[Key]int) (n int) {
		if len(told) != locks {
			t.Errorf("%d locks are listed, of %d", len(told), locks)
		}
		for _, times := range told {
			n = max(n, times)
		}
		return n
	}
	for _, count := range []int{1, 7, 1000} {
		if n := most(walkOver(t, []*daemon{one}, Listing{Client: 7, Count: count}, nil)); n != 1 {
			t.Errorf("with COUNT %d a lock is listed %d times", count, n)
		}
	}
	if n := most(walkOver(t, []*daemon{one}, Listing{Client: 7, Count: 7}, func(step int) {
		if step == 2 {
			c.servers[1].Kill()
		}
	})); n != 1 {
		t.Errorf("while a master fails, a lock is listed %d times", n)
	}
	// The second connection's walk, and the last one's that changes the daemon, stand on their own.
	if n := most(walkOver(t, []*daemon{one}, Listing{Client: 7, Count: 7}, func(int) {
		if _, err := one.list(Listing{Client: 8, Count: 7}); err != nil {
			t.Error(err)
		}
	})); n != 1 {
		t.Errorf("beside another connection's walk, a lock is listed %d times", n)
	}
	if n := most(walkOver(t, []*daemon{one, two}, Listing{Client: 7, Count: 7}, nil)); n < 2 {
		t.Error("a walk over two daemons lists each lock once: then it would not have to remember")
	}
}
