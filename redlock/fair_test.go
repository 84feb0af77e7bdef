package redlock

// fair_test.go: first come, first served over several daemons, on real masters.

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// stands starts a FAIR wait and returns when it is established: from here on later waiters are
// served later.
func (d *daemon) stands(key string, r LockRequest) (out chan waited, leave func()) {
	d.t.Helper()
	r.Key, r.Fair = Key(key), true
	if r.TTL == 0 {
		r.TTL = long
	}
	if r.Wait == 0 {
		r.Wait = time.Minute
	}
	r.Requester = &Requester{ID: standing.Add(1)}
	out = make(chan waited, 1) // its one answer
	leave = d.Wait(nil, r, func(g Grant, err error) { out <- waited{key, g, err} })
	eventually(d.t, "the wait is established", func() bool {
		list, _ := d.Waiting(r.DB, func(k Key) bool { return k == r.Key }, 10_000)
		return len(out) > 0 || slices.ContainsFunc(list, func(w Waiting) bool { return w.Requester.ID == r.Requester.ID })
	})
	return out, leave
}

// standing numbers these waits. How many wait proves nothing about a new one: an earlier one may
// leave meanwhile.
var standing atomic.Int64

// queued is how many waiters a master has in a key's queue.
func (c *cluster) queued(i int, key string) int64 {
	return c.do(i, "ZCARD", "redlockd:q:"+key).(int64)
}

func (c *cluster) noQueues(key string) {
	c.t.Helper()
	c.servers.NoQueues(c.t, key)
}

func got(t *testing.T, out <-chan waited) Grant {
	t.Helper()
	w := <-out
	if w.err != nil {
		t.Fatalf("%s: %v", w.name, w.err)
	}
	return w.grant
}

func TestFair_IsServedInOrderOfArrivalOverSeveralDaemons(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	daemons := []*daemon{c.daemon(), c.daemon(), c.daemon()}
	held := daemons[0].take("k", long)
	var order []chan waited
	var whose []*daemon
	for i := range 12 {
		d := daemons[(i*7)%3]
		out, _ := d.stands("k", LockRequest{})
		order, whose = append(order, out), append(whose, d)
	}
	daemons[0].free("k", held.Token)
	for i, out := range order {
		g := got(t, out)
		for j := i + 1; j < len(order); j++ {
			if len(order[j]) > 0 {
				t.Fatalf("waiter %d was served beside waiter %d", j, i)
			}
		}
		whose[i].free("k", g.Token)
	}
	c.noQueues("k")
}

// Rule: a request with FAIR does not pass an established waiter, with WAIT or without. A plain
// try may.
// Rule: fresh-queue.
func TestFair_NoRequestWithItPassesAnEstablishedWaiter(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	held := one.take("k", long)
	out, _ := one.stands("k", LockRequest{})
	// The key is free on the masters, and the first one has not contended yet.
	blocked, free := make(chan struct{}), make(chan struct{})
	go one.Waiting(0, func(Key) bool { close(blocked); <-free; return false }, 1) // under the lock of its wait queue
	<-blocked
	for i := range c.servers {
		c.do(i, "DEL", "k")
	}
	answers := make(chan error, 1) // its one answer
	two.Lock(nil, LockRequest{Key: "k", TTL: long, Fair: true}, func(_ Grant, err error) { answers <- err })
	if err := <-answers; !errors.Is(err, ErrHeld) {
		t.Errorf("a FAIR try passed: %v", err)
	}
	close(free)
	g := got(t, out)
	one.free("k", g.Token)
	_ = held
	c.noQueues("k")
}

// The requests of a flush are one call of a script.
func TestFair_ForeignDataAtAQueueKeepsNoOtherRequestOfItsFlush(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon(blind)
	for i := range c.servers {
		c.do(i, "SET", "redlockd:q:foreign", "text")
	}
	var b Batch
	answers := map[Key]chan lockAnswer{"a": make(chan lockAnswer, 1), "foreign": make(chan lockAnswer, 1), "z": make(chan lockAnswer, 1)}
	for key, answer := range answers {
		d.Lock(&b, LockRequest{Key: key, TTL: long, Fair: true}, func(g Grant, err error) { answer <- lockAnswer{g, err} })
	}
	b.Send()
	for _, key := range []Key{"a", "z"} {
		if a := receive(t, answers[key]); a.err != nil {
			t.Errorf("%s: %v", key, a.err)
		}
	}
	if a := receive(t, answers["foreign"]); !errors.Is(a.err, ErrWrongType) {
		t.Errorf("foreign: %v, want %v", a.err, ErrWrongType)
	}
}

func TestFair_AWaiterThatLeavesOrGivesUpBlocksNoOther(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	held := one.take("k", long)
	_, leave := one.stands("k", LockRequest{})
	gaveUp, _ := one.stands("k", LockRequest{Wait: 2 * time.Second})
	out, _ := two.stands("k", LockRequest{})
	leave()
	if w := <-gaveUp; !errors.Is(w.err, ErrHeld) {
		t.Errorf("gave up with %v", w.err)
	}
	eventually(t, "only the one who stays stands in the queue", func() bool { return c.queued(0, "k") == 1 && c.queued(2, "k") == 1 })
	one.free("k", held.Token)
	two.free("k", got(t, out).Token)
	c.noQueues("k")
}

// The waiters of a daemon that dies are taken for dead.
func TestFair_TheDeadBlockTheHeadForAsLongAsTheyAreTakenForAlive(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	held := two.take("k", long)
	one.stands("k", LockRequest{})
	out, _ := two.stands("k", LockRequest{})
	one.engine.Pool.Close() // without a word
	began := time.Now()
	two.free("k", held.Token)
	two.free("k", got(t, out).Token)
	t.Logf("the dead blocked the head for %v, at most %v are meant", time.Since(began), ticketTimeout+200*time.Millisecond)
	c.noQueues("k")
}

func TestFair_AWaitingWriterHoldsNewReadersBackAndReadersEnterTogether(t *testing.T) {
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	first := one.lockShared("k")
	writer, _ := two.stands("k", LockRequest{})
	var readers []chan waited
	for i := range 4 {
		out, _ := []*daemon{one, two}[i%2].stands("k", LockRequest{Mode: Readers})
		readers = append(readers, out)
	}
	if err := one.tryShared("k"); !errors.Is(err, ErrHeld) {
		t.Errorf("a FAIR reader passed the waiting writer: %v", err)
	}
	one.free("k", first.Token)
	w := got(t, writer)
	for i, out := range readers {
		if len(out) > 0 {
			t.Errorf("reader %d entered beside the writer", i)
		}
	}
	two.free("k", w.Token)
	for _, out := range readers { // none is released before all are in
		got(t, out)
	}
}

func (d *daemon) lockShared(key string) Grant {
	d.t.Helper()
	answers := make(chan waited, 1) // its one answer
	d.Lock(nil, LockRequest{Key: Key(key), TTL: long, Mode: Readers}, func(g Grant, err error) { answers <- waited{key, g, err} })
	return got(d.t, answers)
}

func (d *daemon) tryShared(key string) error {
	answers := make(chan error, 1) // its one answer
	d.Lock(nil, LockRequest{Key: Key(key), TTL: long, Mode: Readers, Fair: true}, func(_ Grant, err error) { answers <- err })
	return <-answers
}

func TestFair_SeveralKeysAndPermitsWaitInOrder(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	held := one.take("b", long)
	all, _ := one.stands("a", LockRequest{More: []Key{"b"}})
	single, _ := two.stands("a", LockRequest{})
	one.free("b", held.Token)
	g := got(t, all)
	if len(single) > 0 {
		t.Error("a later waiter for one of the keys was served before")
	}
	one.free("a", g.Token)
	one.free("b", g.Token)
	two.free("a", got(t, single).Token)

	limit := LockRequest{Mode: PermitsOf(2)}
	var order []chan waited
	for i := range 5 {
		out, _ := []*daemon{one, two}[i%2].stands("p", limit)
		order = append(order, out)
	}
	for i, out := range order {
		g := got(t, out)
		if i+2 < len(order) && len(order[i+2]) > 0 {
			t.Errorf("waiter %d has a permit beside two others", i+2)
		}
		[]*daemon{one, two}[i%2].free("p", g.Token)
	}
	c.noQueues("a")
}

func TestFair_ARepeatOfTheHoldersTokenPassesTheQueue(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	for key, other := range map[string]LockRequest{"k": {}, "p": {Mode: PermitsOf(1)}} {
		r := other
		r.Key, r.TTL, r.Token, r.Fair, r.Wait = Key(key), long, "the holder's token", true, time.Minute
		out := make(chan waited, 2) // both answers
		answer := func(g Grant, err error) { out <- waited{"holder", g, err} }
		one.Wait(nil, r, answer)
		first := got(t, out)
		behind, _ := two.stands(key, other)
		two.Wait(nil, r, answer)
		if again := got(t, out); again.Fence <= first.Fence {
			t.Errorf("%s: the repeat has fence %d after %d", key, again.Fence, first.Fence)
		}
		one.free(r.Key, r.Token)
		two.free(r.Key, got(t, behind).Token)
	}
}

// Readers that come and go all the time keep a writer waiting for those that were there when it
// came, and for no others, whether or not they say FAIR.
func TestFair_AWriterAmongContinuousReadersWaitsForOneGeneration(t *testing.T) {
	t.Parallel()
	for name, fair := range map[string]bool{"readers with FAIR": true, "readers without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			writesAmongReaders(t, fair)
		})
	}
}

func writesAmongReaders(t *testing.T, fair bool) {
	c := newCluster(t, 3, long)
	daemons := []*daemon{c.daemon(), c.daemon()}
	var mu sync.Mutex
	var written time.Time // the writer was established; zero: not yet
	writes, passed, reads := false, 0, 0
	stop := make(chan struct{})
	var all sync.WaitGroup
	for i := range 64 {
		d := daemons[i%2]
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				came := time.Now()
				out := make(chan waited, 1) // its one answer
				d.Wait(nil, LockRequest{Key: "k", TTL: long, Wait: time.Minute, Mode: Readers, Fair: fair},
					func(g Grant, err error) { out <- waited{"reader", g, err} })
				w := <-out
				if w.err != nil {
					t.Errorf("reader: %v", w.err)
					return
				}
				mu.Lock()
				reads++
				if !written.IsZero() && came.After(written) && !writes {
					passed++
				}
				mu.Unlock()
				time.Sleep(time.Duration(i%5) * time.Millisecond) // it reads
				d.Unlock(nil, UnlockRequest{Key: "k", Token: w.grant.Token}, func(bool, error) {})
			}
		})
	}
	eventually(t, "the readers come and go", func() bool { mu.Lock(); defer mu.Unlock(); return reads > 200 })
	for range 5 {
		out, _ := daemons[0].stands("k", LockRequest{Wait: 20 * time.Second})
		mu.Lock()
		written, writes = time.Now(), false
		mu.Unlock()
		g := got(t, out)
		mu.Lock()
		writes = true
		mu.Unlock()
		daemons[0].free("k", g.Token)
	}
	close(stop)
	all.Wait()
	if passed > 0 {
		t.Errorf("%d readers passed an established writer", passed)
	}
	t.Logf("%d reads", reads)
	c.noQueues("k")
}
