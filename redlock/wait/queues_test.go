package wait

// queues_test.go: wait queues on masters inside this process.

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
	"redlockd/redlock/redlocktest"
)

func TestWait_IsServedInOrderByReleasesThroughThisDaemon(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	held := d.Take(lease.LockRequest{Key: "k"})
	const n = 50
	out := make(chan waited, n) // n: every answer
	for i := range n {
		d.waitFor(fmt.Sprint(i), Request{LockRequest: lease.LockRequest{Key: "k"}}, out)
	}
	if got := d.Waiters(); got != n {
		t.Fatalf("%d wait, want %d", got, n)
	}
	fence := held.Fence
	for i := range n {
		if released, err := d.Release("k", held.Token); !released || err != nil {
			t.Fatalf("release %d: %v, %v", i, released, err)
		}
		w := <-out
		if w.err != nil {
			t.Fatalf("%s: %v", w.name, w.err)
		}
		held = w.grant
		if w.name != fmt.Sprint(i) || held.Fence <= fence {
			t.Fatalf("grant %d went to %s with fence %d after %d", i, w.name, held.Fence, fence)
		}
		fence = held.Fence
	}
	if len(out) > 0 {
		t.Errorf("%d answers too many", len(out))
	}
	d.left()
}

func TestWait_EndsWithNilWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	d.Take(lease.LockRequest{Key: "k"})
	out := make(chan waited, 2) // both answers
	d.waitFor("head", Request{LockRequest: lease.LockRequest{Key: "k"}, Wait: 2 * time.Second}, out)
	d.waitFor("second", Request{LockRequest: lease.LockRequest{Key: "k"}, Wait: 2 * time.Second}, out)
	for range 2 {
		if w := <-out; !errors.Is(w.err, engine.ErrHeld) {
			t.Errorf("%s: %v, want ErrHeld", w.name, w.err)
		}
	}
	d.left()
}

// Everything at once: waits that end, leavers, releases. Every wait is answered
// once, and no two hold the key together.
func TestWait_StormOfWaitersLeaversAndReleases(t *testing.T) {
	d := newEmbedded(t)
	var mu sync.Mutex
	holder, breaches := "", 0
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			me := fmt.Sprint(i)
			for round := range 12 {
				answer := make(chan waited, 2) // 2: a second answer would be seen
				leave := d.waitFor(me, Request{LockRequest: lease.LockRequest{Key: "k"}, Wait: time.Duration(1+(i+round)%4) * 20 * time.Millisecond}, answer)
				if (i+round)%5 == 0 {
					leave()
				}
				w := <-answer
				if w.err != nil {
					continue
				}
				mu.Lock()
				if holder != "" {
					breaches++
				}
				holder = me
				mu.Unlock()
				time.Sleep(rand.N(time.Millisecond)) // another holder comes in between
				mu.Lock()
				holder = ""
				mu.Unlock()
				d.Release("k", w.grant.Token)
			}
		})
	}
	all.Wait()
	d.Quiet()
	if breaches > 0 {
		t.Errorf("%d breaches", breaches)
	}
	d.left()
	d.Take(lease.LockRequest{Key: "k"})
}

// A plain SET NX does not look at the queue of FAIR. A hand-over does, and lets that queue go first.
func TestWait_AHandOverLetsTheQueueOfFairGoFirst(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	g := d.Take(lease.LockRequest{Key: "k", TTL: time.Minute})
	d.Quiet()
	masters := d.engine.Pool.Embedded()
	for lane := range d.engine.Pool.N() { // a waiter of another daemon
		for key, score := range map[string]float64{"redlockd:q:k": 1, "redlockd:qw:k": 1, "redlockd:qx:k": 1e15} {
			if _, err := masters.At(lane).Server().ZAdd(key, score, "other/1"); err != nil {
				t.Fatal(err)
			}
		}
	}
	out := make(chan waited, 1)
	d.waitFor("w", Request{LockRequest: lease.LockRequest{Key: "k"}}, out)
	state := func() (ln *waitQueue, contends, behind bool) {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, one := range d.queues {
			ln, contends, behind = one, one.contender != nil, one.watch.behind
		}
		return ln, contends, behind
	}
	redlocktest.Eventually(t, "it stands in line", func() bool {
		ln, contends, _ := state()
		return ln != nil && !contends
	})
	d.Release("k", g.Token)
	redlocktest.Eventually(t, "it finds the other waiter", func() bool {
		if len(out) > 0 {
			t.Fatal("it has passed the other waiter")
		}
		_, _, behind := state()
		return behind
	})
	for lane := range d.engine.Pool.N() {
		for _, kind := range []string{"q", "qw", "qx"} {
			masters.At(lane).Server().Del("redlockd:" + kind + ":k")
		}
	}
	if w := <-out; w.err != nil {
		t.Error(w.err)
	}
}

// A later question of the same wait may be refused: the wait does not end with no.
func TestWait_RemembersThatADowngradeHasBegun(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	w := &waiter{list: &d.waitList, request: Request{LockRequest: lease.LockRequest{Key: "k", Mode: lease.Readers}}, end: forever}
	w.queue = &waitQueue{list: &d.waitList}
	begun := &engine.NoQuorum{Downgrading: true}
	for _, c := range []struct{ said, want error }{
		{engine.ErrHeld, engine.ErrHeld}, {&engine.NoQuorum{}, nil}, {engine.ErrHeld, engine.ErrHeld}, {begun, begun}, {engine.ErrHeld, begun},
	} {
		w.queue.decided(w, lease.Grant{}, c.said)
		if err := w.finalError(); c.want != nil && err != c.want {
			t.Errorf("after %v the wait would end with %v, want %v", c.said, err, c.want)
		}
	}
}
