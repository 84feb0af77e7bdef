package wait

// scriptwait_test.go: waiting until another client releases.

import (
	"errors"
	"testing"
	"time"

	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
	"redlockd/redlock/redlocktest"
)

// freed is what AwaitFree answered.
type freed struct {
	free bool
	err  error
}

func (d *daemon) awaitFree(key engine.Key, timeout time.Duration) (answer <-chan freed, leave func()) {
	answers := make(chan freed, 1) // it answers once
	leave = d.AwaitFree(AwaitRequest{Key: key, Timeout: timeout}, func(free bool, err error) { answers <- freed{free, err} })
	return answers, leave
}

// watches waits until a queue of waiters that do not take the lock has reports of its key
// from all masters, and has this length.
func (d *daemon) watches(key engine.Key, length int) {
	d.T.Helper()
	redlocktest.Eventually(d.T, "the masters tell of the key", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		ln := d.queues[queueID{keys: string(key), peekOnly: true}]
		return ln != nil && ln.length == length && ln.contender == nil && ln.watch.tracked == d.engine.Pool.N()
	})
}

func isFree(t *testing.T, what string, answer <-chan freed) {
	t.Helper()
	if a := redlocktest.Receive(t, answer); !a.free || a.err != nil {
		t.Errorf("%s: %+v, want that it is free", what, a)
	}
}

func TestAwaitFree_AnswersOnceTheKeyIsFree(t *testing.T) {
	t.Parallel()
	d := newDaemon(redlocktest.NewCluster(t, 3, time.Minute))
	free, _ := d.awaitFree("k", time.Minute)
	isFree(t, "a free key", free)
	held := d.take("k", 20*time.Second)
	inVain, _ := d.awaitFree("k", 2*time.Second)
	if a := redlocktest.Receive(t, inVain); a.free || a.err != nil {
		t.Errorf("of a held one, in vain: %+v", a)
	}
	left, leave := d.awaitFree("k", time.Minute)
	leave()
	leave()
	if a := redlocktest.Receive(t, left); a.free || a.err != nil {
		t.Errorf("of a client that has gone: %+v", a)
	}
	waits, _ := d.awaitFree("k", time.Minute)
	d.Free("k", held.Token)
	isFree(t, "after the release", waits)
	d.take("k", 2*time.Second)
	expires, _ := d.awaitFree("k", time.Minute)
	isFree(t, "after the lease", expires)
	if n := d.Waiters(); n != 0 {
		t.Errorf("%d wait, want nobody", n)
	}
}

func TestAwaitFree_OfManyCostsTheMastersWhatOneCosts(t *testing.T) {
	c := redlocktest.NewCluster(t, 3, time.Minute)
	d, other := newDaemon(c), newDaemon(c)
	held := other.take("k", 20*time.Second)
	var answers []<-chan freed
	for range 20 {
		one, _ := d.awaitFree("k", time.Minute)
		answers = append(answers, one)
	}
	d.watches("k", len(answers))
	before := d.engine.Pool.Counters().Commands
	other.Free("k", held.Token)
	isFree(t, "the first one", answers[0])
	asked := d.engine.Pool.Counters().Commands - before
	// Polls follow one another as long as nobody takes the lock: those of a slow machine have been
	// answered by now but for one.
	polled := 2
	for _, one := range answers[1:] {
		polled += len(one)
	}
	// A poll, and the votes of the masters for it; no other waiter polled.
	if most := polled * 2 * d.engine.Pool.N(); asked > int64(most) {
		t.Errorf("%d commands, want no more than %d for %d polls", asked, most, polled)
	}
	for i, one := range answers[1:] { // no waiter takes the lock, so the next one polls
		isFree(t, "number "+string(rune('b'+i)), one)
	}
}

func TestAwaitFree_IsWokenOneAtATimeByReleasesThroughItsDaemon(t *testing.T) {
	t.Parallel()
	d := newDaemon(redlocktest.NewCluster(t, 3, time.Minute))
	held := d.take("k", 20*time.Second)
	// The woken client takes the lock before the next one polls.
	taken := make(chan lease.Grant, 1) // its one answer
	d.AwaitFree(AwaitRequest{Key: "k", Timeout: time.Minute}, func(bool, error) {
		d.Lock(nil, lease.LockRequest{Key: "k", TTL: 20 * time.Second}, func(g lease.Grant, err error) {
			if err != nil {
				t.Error(err)
			}
			taken <- g
		})
	})
	second, _ := d.awaitFree("k", time.Minute)
	d.watches("k", 2)
	d.Free("k", held.Token)
	next := <-taken
	select {
	case a := <-second:
		t.Fatalf("the second one was told %+v of a lock that is held", a)
	default:
	}
	d.watches("k", 1)
	d.Free("k", next.Token)
	isFree(t, "the second one", second)
}

// No client can take the lock unless a quorum of masters has nothing. A client that is
// woken before would try at once, and again.
func TestAwaitFree_CopiesOfSeveralThatHaveNoQuorumAreInTheWay(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, time.Minute)
	d := newDaemon(c)
	c.Do(0, "SET", "k", "left over", "PX", 60000)
	c.Do(1, "SET", "k", "another one", "PX", 60000)
	waits, _ := d.awaitFree("k", time.Minute)
	d.watches("k", 1)
	select {
	case a := <-waits:
		t.Fatalf("%+v", a)
	default:
	}
	c.Do(1, "DEL", "k")
	isFree(t, "with one copy left", waits)
}

func TestAwaitFree_CountsAsAWaiter(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, time.Minute)
	d := newDaemon(c)
	d.maxWaiters = 2
	d.take("k", 20*time.Second)
	_, leave := d.awaitFree("k", time.Minute)
	d.awaitFree("k", time.Minute)
	var busy *engine.Busy
	refused, _ := d.awaitFree("k", time.Minute)
	if a := redlocktest.Receive(t, refused); !errors.As(a.err, &busy) || busy.Option != "--max-waiters" {
		t.Errorf("%+v, want that too many wait", a)
	}
	d.maxWaiters, d.maxPerKey = 3, 2
	refused, _ = d.awaitFree("k", time.Minute)
	if a := redlocktest.Receive(t, refused); !errors.As(a.err, &busy) || busy.Option != "--max-waiters-per-key" {
		t.Errorf("%+v, want that too many wait for the key", a)
	}
	if list, all := d.Waiting(0, func(engine.Key) bool { return true }, 10); all != 2 || len(list) != 2 || list[0].Keys[0] != "k" {
		t.Errorf("%d are listed: %+v", all, list)
	}
	leave()
	_, leave = d.awaitFree("k", time.Minute)
	leave()
}

func TestAwaitFree_EndsWithTheDaemon(t *testing.T) {
	t.Parallel()
	d := newDaemon(redlocktest.NewCluster(t, 3, time.Minute))
	d.take("k", 20*time.Second)
	waits, _ := d.awaitFree("k", time.Minute)
	d.End()
	if a := redlocktest.Receive(t, waits); !errors.Is(a.err, engine.ErrShutdown) {
		t.Errorf("%+v, want that the daemon shuts down", a)
	}
	late, _ := d.awaitFree("k", time.Minute)
	if a := redlocktest.Receive(t, late); !errors.Is(a.err, engine.ErrShutdown) {
		t.Errorf("behind its end: %+v", a)
	}
}
