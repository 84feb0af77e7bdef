package redlock

// ids_order_test.go: every id is greater than every id whose reply was sent before its request
// arrived, whichever daemon gave it and whatever happened meanwhile.

import (
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlockd/redlock/checker"
	"redlockd/redlock/redlocktest"
)

func TestIDs_OfOneCallerFollowEachOtherWithoutGaps(t *testing.T) {
	t.Parallel()
	d := newCluster(t, 3, long).daemon().volatileIDs()
	for want := int64(1); want <= 50; want++ {
		if got := d.draw("n", 1); got != want {
			t.Fatalf("id %d, want %d", got, want)
		}
	}
	for _, step := range []struct{ count, first int64 }{{5, 51}, {1, 56}, {1_000_000, 57}, {1, 1_000_057}} {
		if got := d.draw("n", step.count); got != step.first {
			t.Fatalf("%d ids begin at %d, want %d", step.count, got, step.first)
		}
	}
	if got := d.draw("another", 1); got != 1 {
		t.Errorf("another counter begins at %d, want 1", got)
	}
	if got := receive(t, d.requestIDs(IDRequest{DB: 3, Name: "n", Count: 1})); got.err != nil || got.first != 1 {
		t.Errorf("the counter of the same name in another database: %d, %v, want 1", got.first, got.err)
	}
	if got := d.draw("n", 1); got != 1_000_058 {
		t.Errorf("id %d after another database's, want 1000058", got)
	}
}

// A daemon that begins knows nothing, and its first guess is refused.
func TestIDs_OfANewDaemonContinueAboveThoseOfTheOthers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.daemon().volatileIDs()
	last := one.draw("n", 4711) + 4710
	for range 3 {
		next := c.daemon().volatileIDs()
		for _, d := range []*daemon{next, one} {
			got := d.draw("n", 10)
			if got <= last {
				t.Fatalf("id %d after id %d", got, last)
			}
			last = got + 9
		}
	}
}

// Requests of one batch share one round: that is what makes ids cheap.
func TestIDs_SixtyFourCallersShareTheirRounds(t *testing.T) {
	c := newCluster(t, 3, long)
	d := c.daemon().volatileIDs()
	const callers, each = 64, 200
	before := d.engine.Pool.Counters().Commands
	var callersLeft sync.WaitGroup
	for range callers {
		callersLeft.Go(func() {
			for range each {
				if a := <-d.requestIDs(IDRequest{Name: "n", Count: 1}); a.err != nil {
					t.Errorf("id: %v", a.err)
				}
			}
		})
	}
	callersLeft.Wait()
	perMaster := float64(d.engine.Pool.Counters().Commands-before) / 3
	t.Logf("%.4f commands per id on a master", perMaster/(callers*each))
	if perMaster > callers*each/4 {
		t.Errorf("%.0f commands on a master for %d ids, want far fewer than one each", perMaster, callers*each)
	}
	if got := d.draw("n", 1); got != callers*each+1 {
		t.Errorf("id %d after %d ids to a single daemon, want no gap", got, callers*each)
	}
}

func TestIDs_EndAtTheLargestIntegerAndNeverWrap(t *testing.T) {
	t.Parallel()
	const end = math.MaxInt64
	c := newCluster(t, 3, long)
	one, two := c.daemon().volatileIDs(), c.daemon().volatileIDs()
	if err := one.reseed("n", end-10); err != nil {
		t.Fatal(err)
	}
	exhausted := func(d *daemon, count, at int64) {
		t.Helper()
		got, err := d.ids("n", count)
		var none *Exhausted
		if !errors.As(err, &none) || got != 0 || none.Value != at {
			t.Fatalf("%d ids at %d: %d, %v, want Exhausted at that value", count, at, got, err)
		}
	}
	exhausted(one, 11, end-10)
	exhausted(two, 1_000_000, end-10)
	if got := one.draw("n", 8); got != end-9 {
		t.Fatalf("id %d, want %d: what was refused must not be used up", got, int64(end-9))
	}
	exhausted(two, 3, end-2)
	// Of two requests in one round the one that fits is served.
	tooMany, fits := make(chan idAnswer, 1), make(chan idAnswer, 1)
	var b Batch
	two.NextID(&b, IDRequest{Name: "n", Count: 3}, func(first int64, err error) { tooMany <- idAnswer{first, err} })
	two.NextID(&b, IDRequest{Name: "n", Count: 2}, func(first int64, err error) { fits <- idAnswer{first, err} })
	b.Send()
	if a := receive(t, tooMany); a.err == nil {
		t.Fatalf("3 ids where 2 are left begin at %d", a.first)
	}
	if a := receive(t, fits); a.err != nil || a.first != end-1 {
		t.Fatalf("the last two ids: %d, %v, want %d", a.first, a.err, int64(end-1))
	}
	for _, d := range []*daemon{one, two, c.daemon().volatileIDs()} {
		exhausted(d, 1, end)
		exhausted(d, 1_000_000, end)
	}
	for i := range c.servers {
		if got, _ := c.do(i, "GET", "redlockd:id:n").(string); !strings.HasPrefix(got, "9223372036854775807@") {
			t.Errorf("master %s: the counter is %q, want 2^63-1", name(i), got)
		}
	}
}

// A master that is killed with kill -9 and comes back with its memory.
func TestIDs_AreDistinctAndInOrderWhileADurableMasterCrashes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, long, durable...)
	one, two := c.daemon(), c.daemon()
	l := load(t, one, two)
	l.until(1, 4)
	c.servers[0].Kill()
	one.await(0, "down")
	l.until(2, 4)
	c.servers[0].Restart()
	one.await(0, "voting")
	two.await(0, "voting")
	c.servers[1].Kill()
	l.until(3, 4)
	c.servers[1].Restart()
	c.servers[2].Kill() // now the first one's memory is needed
	l.end()
}

// A master that comes back with nothing votes only after it has received an id that was chosen
// without it, and then the group can rely on it.
func TestIDs_AreDistinctAndInOrderWhileAVolatileMasterForgets(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, 100*time.Millisecond)
	one, two := c.daemon().volatileIDs(), c.daemon().volatileIDs()
	l := load(t, one, two)
	l.until(1, 4)
	c.servers[1].RestartEmpty()
	for _, d := range []*daemon{one, two} {
		d.awaitProcess(1, c.servers[1])
		d.await(1, "voting")
	}
	eventually(t, "the master that forgot is trusted again", func() bool { return one.counter("n")[1].Trusted })
	l.until(2, 4)
	c.servers[2].Kill()
	c.servers[3].Kill() // now its new memory is needed
	given := l.given.Load()
	eventually(t, "ids go on with it", func() bool { return l.given.Load() > given+1000 })
	l.end()
}

// idLoad is callers that draw ids through several daemons until it is enough.
type idLoad struct {
	t      *testing.T
	origin time.Time
	target int64
	given  atomic.Int64
	stop   atomic.Bool
	ended  sync.WaitGroup

	mu     sync.Mutex
	ranges []checker.Range
	undone []error // answers that were neither ids nor NoQuorum
}

// load starts 32 callers at each daemon.
func load(t *testing.T, daemons ...*daemon) *idLoad {
	l := &idLoad{t: t, origin: time.Now(), target: 200_000}
	if raceDetector {
		l.target = 60_000
	}
	if longRun() {
		l.target = 1_000_000
	}
	for caller := range 32 * len(daemons) {
		l.ended.Go(func() { l.draw(caller, daemons[caller%len(daemons)]) })
	}
	t.Cleanup(func() { l.stop.Store(true); l.ended.Wait() })
	return l
}

func (l *idLoad) draw(caller int, d *daemon) {
	var mine []checker.Range
	var unexpected []error
	count := int64(1)
	for !l.stop.Load() {
		r := checker.Range{Client: caller, Name: "n", Count: count, Invoke: time.Since(l.origin)}
		a := <-d.requestIDs(IDRequest{Name: "n", Count: count})
		r.First, r.Complete = a.first, time.Since(l.origin)
		var unknown *NoQuorum
		switch {
		case a.err == nil:
			mine = append(mine, r)
			l.given.Add(count)
		case !errors.As(a.err, &unknown):
			unexpected = append(unexpected, a.err)
		}
		if !longRun() {
			count = 1 + int64(caller+len(mine))%4
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ranges = append(l.ranges, mine...)
	l.undone = append(l.undone, unexpected...)
}

// until waits for so much of the target.
func (l *idLoad) until(part, of int64) {
	l.t.Helper()
	redlocktest.EventuallyIn(l.t, 10*time.Minute, "enough ids are given", func() bool { return l.given.Load() >= l.target*part/of })
}

// end waits for the rest and checks all of it.
func (l *idLoad) end() {
	l.t.Helper()
	l.until(1, 1)
	l.stop.Store(true)
	l.ended.Wait()
	l.t.Logf("%d ids in %d requests over %v", l.given.Load(), len(l.ranges), time.Since(l.origin).Round(time.Millisecond))
	if err := checker.CheckIDs(l.ranges); err != nil {
		l.t.Error(err)
	}
	for _, err := range l.undone[:min(3, len(l.undone))] {
		l.t.Errorf("%d requests were answered like this: %v", len(l.undone), err)
	}
	if slices.ContainsFunc(l.ranges, func(r checker.Range) bool { return r.First < 1 }) {
		l.t.Error("an id is not positive")
	}
}
