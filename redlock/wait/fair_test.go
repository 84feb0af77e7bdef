package wait

// fair_test.go: tickets and their queues, on real masters.

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
	"redlockd/redlock/redlocktest"
)

// stands starts a FAIR wait for the key k, whose queue is empty, and returns when it is established.
func (d *daemon) stands() (out chan waited, leave func()) {
	d.T.Helper()
	out = make(chan waited, 1) // its one answer
	r := Request{LockRequest: lease.LockRequest{Key: "k", TTL: long}, Wait: time.Minute, Fair: true}
	leave = d.Wait(nil, r, func(g lease.Grant, err error) { out <- waited{"k", g, err} })
	redlocktest.Eventually(d.T, "the wait is established", func() bool {
		_, all := d.Waiting(0, func(engine.Key) bool { return true }, 1)
		return all == 1 || len(out) > 0
	})
	return out, leave
}

// The timer that refreshes tickets may fire when the queue is empty for a moment, because
// a waiter has left whose ballot is still under way.
func TestFair_AQueueThatWasEmptyForAMomentIsKept(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, long)
	d := newDaemon(c, redlocktest.Relayed, patient)
	for i := range 2 {
		c.Do(i, "SET", "k", "foreign", "PX", 60_000)
	}
	var ln *waitQueue
	// Again, if the machine stood still until the master was given up.
	redlocktest.Eventually(t, "there is a queue with a ballot under way", func() bool {
		d.Relays[1].Resume()
		redlocktest.Settled(t, d.engine, 0, 1, 2)
		out, leave := d.stands()
		d.Relays[1].Pause()
		d.Freed(nil, 0, "k") // its head contends, and gets no answer
		leave()
		<-out
		d.mu.Lock()
		defer d.mu.Unlock()
		ln = nil
		for _, one := range d.queues {
			ln = one
		}
		return ln != nil && ln.refreshTimer != nil
	})
	ln.refreshTimer.Stop() // it fires now
	ln.refreshTickets()
	_, leave := d.stands()
	defer leave()
	d.Relays[1].Resume()
	ends := func() string {
		scores, _ := c.Do(0, "ZRANGE", "redlockd:qx:k", 0, -1, "WITHSCORES").([]any)
		if len(scores) != 2 {
			t.Fatalf("%v stand in the queue, want one", scores)
		}
		return scores[1].(string)
	}
	first := ends()
	redlocktest.Eventually(t, "its place is kept", func() bool { return ends() > first })
}

// Many come and go through three daemons: of two that were established one after
// the other, the first is served first.
func TestFair_NoEstablishedWaiterIsOvertakenInAStorm(t *testing.T) {
	rounds := 12
	if os.Getenv("REDLOCKD_LONG") == "1" {
		rounds = 1300
	}
	c := redlocktest.NewCluster(t, 3, long)
	var daemons []*daemon
	for range 3 {
		daemons = append(daemons, newDaemon(c))
	}
	var mu sync.Mutex
	type turn struct{ came, stood time.Time }
	var served []turn // in order of their grants
	holders := 0
	var all sync.WaitGroup
	for i := range 9 {
		d := daemons[i%3]
		elapsed := d.engine.Clock.Now()
		start := time.Now().Add(-elapsed) // of the daemon's clock, and never too early
		all.Go(func() {
			for round := range rounds {
				out := make(chan waited, 1) // its one answer
				r := Request{LockRequest: lease.LockRequest{Key: "k", TTL: long}, Wait: time.Minute, Fair: true}
				w := &waiter{list: &d.waitList, request: r, end: d.engine.Clock.Now() + r.Wait, done: func(g lease.Grant, err error) { out <- waited{fmt.Sprint(i), g, err} }}
				came := time.Now()
				d.enqueue(nil, w)
				if (i+round)%5 == 0 {
					w.leave()
				}
				answer := <-out
				if errors.Is(answer.err, ErrLeft) {
					continue
				}
				if answer.err != nil {
					t.Errorf("waiter %d: %v", i, answer.err)
					return
				}
				mu.Lock()
				if holders++; holders > 1 {
					t.Error("two hold it")
				}
				served = append(served, turn{came, start.Add(w.request.Ticket().Since)})
				mu.Unlock()
				time.Sleep(rand.N(time.Millisecond)) // another holder comes in between
				mu.Lock()
				holders--
				mu.Unlock()
				d.Unlock(nil, lease.UnlockRequest{Key: "k", Token: answer.grant.Token}, func(bool, error) {})
			}
		})
	}
	all.Wait()
	overtaken := 0
	for i, later := range served {
		for _, earlier := range served[:i] {
			if later.stood.Before(earlier.came) {
				overtaken++
			}
		}
	}
	t.Logf("%d grants", len(served))
	if overtaken > 0 {
		t.Errorf("%d times somebody was served before one who was established before he came", overtaken)
	}
	c.NoQueues(t, "k")
}

// A daemon that drains also answers waiters that are on their way into the wait queue.
func TestFair_AWaiterOnItsWayIntoTheWaitQueueReceivesTheEnd(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, long)
	d := newDaemon(c)
	d.take("k", long)
	for range 20 {
		out := make(chan waited, 1) // its one answer
		d.waitFor("k", Request{LockRequest: lease.LockRequest{Key: "k", TTL: long}, Fair: true}, out)
		d.End()
		if w := <-out; !errors.Is(w.err, engine.ErrShutdown) {
			t.Fatalf("answered %v, want ErrShutdown", w.err)
		}
		d.mu.Lock()
		d.closed = false
		d.mu.Unlock()
	}
	c.NoQueues(t, "k")
}

// returning is the trait of a daemon whose tickets no timer refreshes.
func returning(d *redlocktest.Daemon, o *pool.Options) {
	d.Clock.Hold(refreshInterval)
	o.Late = 5 * time.Second
}

// places are the waiters of a key on one master inside this process, in their order.
func (d *daemon) places(lane int, key string) []string {
	var all map[string]float64
	var out []string
	master := d.engine.Pool.Embedded().At(lane)
	master.Turn(func() { all, _ = master.Server().SortedSet("redlockd:q:" + key) }) // no such key: no waiter
	for id := range all {
		out = append(out, id)
	}
	slices.SortFunc(out, func(a, b string) int { return int(all[a] - all[b]) })
	return out
}

// inLine are the waiters of a key in this daemon, in their order.
func (d *daemon) inLine(db int, key engine.Key) (out []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := waiter{request: Request{LockRequest: lease.LockRequest{DB: db, Key: key}, Fair: true}}
	if ln := d.queues[w.queueID()]; ln != nil {
		for one := ln.head; one != nil; one = one.next {
			out = append(out, one.ticket.ID)
		}
	}
	return out
}

// No timer brings the places back here, so nothing but the reconnect does.
func TestFair_AMasterThatForgotHasThePlacesAgainBeforeTheNextKeep(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t, returning)
	for _, db := range []int{0, 3} {
		d.Take(lease.LockRequest{DB: db, Key: "k"})
	}
	out := make(chan waited, 4) // every answer
	for _, db := range []int{0, 3} {
		for range 2 {
			d.waitFor("waits", Request{LockRequest: lease.LockRequest{DB: db, Key: "k"}, Fair: true}, out)
		}
	}
	redlocktest.Eventually(t, "all of them stand in line", func() bool { return len(d.inLine(0, "k")) == 2 && len(d.inLine(3, "k")) == 2 })
	if n := len(d.refreshAfterReconnect(0)); n != 1 {
		t.Errorf("%d commands keep two waiters for one key, want 1", n)
	}
	forgets := d.engine.Pool.Embedded().At(4)
	forgets.Turn(forgets.Server().FlushAll)
	redlocktest.Eventually(t, "the master that forgot has them again, in their order", func() bool {
		return slices.Equal(d.places(4, "k"), d.inLine(0, "k"))
	})
	d.End()
	for range 4 {
		<-out
	}
}
