package redlock

// moving_test.go: the slot of a key leaves the group of masters while operations are under way.

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"redlockd/pool"
)

// moves is a map of slots in which the group has all keys or none. leave and leaveAndReturn change it as
// soon as the next ballot has begun.
type moves struct {
	mu      sync.Mutex
	version uint32
	since   uint32 // 0 = the keys have left
	next    func()
}

func (m *moves) Version() uint32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	began := m.version
	if next := m.next; next != nil {
		m.next = nil
		next()
	}
	return began
}

func (m *moves) Since(Key) uint32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.since
}

func (m *moves) Moving(Key) *Moving {
	return &Moving{Slots: "0-99", From: "g1", To: "g2", Rest: 1500 * time.Millisecond}
}

func (m *moves) leaveLocked()  { m.version, m.since = m.version+1, 0 }
func (m *moves) returnLocked() { m.version, m.since = m.version+1, m.version+1 }

func (m *moves) change(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// moving gives a daemon this map.
func moving(m *moves) trait { return func(d *daemon, _ *pool.Options) { d.ownership = m } }

// isMoving wants the answer that the key's slot is on its way.
func isMoving(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		t.Fatalf("%s is granted after its slot has left the group", what)
	}
	e, ok := errors.AsType[*Moving](err)
	if want := "the slots 0-99 move from group g1 to g2; nothing was done, try again in 1500 ms"; !ok || e.To != "g2" || err.Error() != want {
		t.Fatalf("%s: %v", what, err)
	}
}

// Rule: slots-no-end-check. What is queued when the slots leave the group is sent under its next
// configuration, which must grant nothing in them.
func TestMoving_WhatWasBegunBeforeTheKeyLeftItsGroupIsNotGranted(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long, durable...)
	for _, returns := range []bool{false, true} {
		m := &moves{version: 1, since: 1}
		d := c.daemon(moving(m))
		work := Key(fmt.Sprint("work-", returns))
		leaves := func() {
			m.change(func() {
				m.next = func() {
					if m.leaveLocked(); returns {
						m.returnLocked()
					}
				}
			})
		}
		stays := func() { m.change(m.returnLocked) }
		request := func(r LockRequest) error {
			leaves()
			r.TTL = time.Minute
			return receive(t, d.request(r)).err
		}
		isMoving(t, "a lock", request(LockRequest{Key: "k"}))
		isMoving(t, "a lock with a token", request(LockRequest{Key: "k", Token: "token-of-a-caller"}))
		isMoving(t, "a lock of two keys", request(LockRequest{Key: "k", More: []Key{"l"}}))
		isMoving(t, "a read lock", request(LockRequest{Key: "k", Mode: Readers}))
		isMoving(t, "a permit", request(LockRequest{Key: "k", Mode: PermitsOf(2)}))
		isMoving(t, "a place in the queue", request(LockRequest{Key: "k", Fair: true}))
		stays()
		for _, key := range []string{"k", "l"} {
			eventually(t, "every copy is given back", func() bool {
				return c.do(0, "EXISTS", key) == int64(0) && c.do(1, "EXISTS", key) == int64(0) && c.do(2, "EXISTS", key) == int64(0)
			})
		}
		g := d.take("k", time.Minute)
		leaves()
		_, err := d.extend("k", g.Token, time.Minute)
		isMoving(t, "an extension", err)
		if was, err := d.unlock("k", g.Token); !was || err != nil {
			t.Errorf("a release while the slot moves: %v, %v", was, err)
		}
		stays()
		first := d.draw("n", 1)
		leaves()
		_, err = d.ids("n", 1)
		isMoving(t, "an id", err)
		stays()
		if second := d.draw("n", 1); second <= first {
			t.Errorf("id %d after %d", second, first)
		}
		leaves()
		_, err = d.tryWork(WorkRequest{Key: work, Timeout: time.Minute, Max: 9})
		isMoving(t, "an attempt", err)
		stays()
		w, err := d.tryWork(WorkRequest{Key: work, Timeout: time.Minute, Max: 9})
		for end := time.Now().Add(time.Minute); w.State == WorkRunning && time.Now().Before(end); time.Sleep(time.Millisecond) { // the attempt before is being taken back
			w, err = d.tryWork(WorkRequest{Key: work, Timeout: time.Minute, Max: 9})
		}
		if err != nil || w.State != WorkAcquired {
			t.Fatalf("%+v, %v", w, err)
		}
		leaves()
		_, err = d.prolong(w, time.Minute)
		isMoving(t, "an extension of an attempt", err)
		stays()
		leaves()
		isMoving(t, "the end of an attempt", receive(t, d.requestEnd(d.WorkFail, w)).err)
		stays()
		leaves()
		writes := make(chan error, 1)
		d.Write(nil, WriteRequest{Key: "v", Effect: WriteReplaces, Value: "token-of-a-writer", TTL: time.Minute}, func(_ bool, err error) { writes <- err })
		if err := receive(t, writes); err != nil { // there is nothing to replace
			t.Errorf("a write: %v", err)
		}
	}
}

// A lease that cannot be renewed is held until its end, and its holder is notified then.
func TestMoving_AHoldEndsWithItsLease(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	m := &moves{version: 1, since: 1}
	d := c.daemon(moving(m))
	over := make(chan error, 1)
	const ttl = 3 * time.Second
	wanted := make(chan string, 1)
	hold := HoldTerms{OnEnd: func(_ Grant, reason error, _ time.Duration) { over <- reason }, OnWanted: func(key Key, text string) { wanted <- string(key) + ": " + text }}
	a := receive(t, d.request(LockRequest{Key: "k", TTL: ttl, Hold: &hold}))
	if a.err != nil {
		t.Fatal(a.err)
	}
	m.change(m.leaveLocked)
	d.DropMoved()
	if got := receive(t, wanted); got != "k: the slots 0-99 move from group g1 to g2: the lock is not renewed any more" {
		t.Errorf("its holder is notified: %s", got)
	}
	extended := d.Counters().Extended
	if reason := receive(t, over); !errors.Is(reason, ErrLostExpired) || a.grant.Validity() > 0 {
		t.Errorf("lost because %v, %v before its end", reason, a.grant.Validity())
	}
	if n := d.Counters().Extended - extended; n != 0 {
		t.Errorf("renewed %d times after its slot has left the group", n)
	}
}

// Waiters, also those whose request is under way, are sent to the group that gets the slot.
func TestMoving_WaitersAreLetGo(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	m := &moves{version: 1, since: 1}
	d := c.daemon(moving(m))
	d.take("k", time.Minute)
	d.find(WorkRequest{Key: "w", Timeout: time.Minute, Max: 2}, WorkAcquired, 1)
	const n = 5
	answers := make(chan error, 5*n)
	for range n {
		for _, r := range []LockRequest{{}, {Fair: true}, {Token: NewToken()}} {
			r.Key, r.TTL, r.Wait = "k", time.Minute, time.Hour
			d.Wait(nil, r, func(_ Grant, err error) { answers <- err })
		}
		d.AwaitFree(AwaitRequest{Key: "k", Timeout: time.Hour}, func(_ bool, err error) { answers <- err })
		d.Work(nil, WorkRequest{Key: "w", Timeout: time.Minute, Max: 2, Wait: time.Hour}, func(_ Work, err error) { answers <- err })
	}
	eventually(t, "all wait", func() bool { return d.Waiters() == 5*n })
	lost := make(chan bool, 1)
	d.Track(0, "k", Seen{Refused: true}, func(l bool) { lost <- l })
	m.change(m.leaveLocked)
	d.DropMoved()
	for range 5 * n {
		isMoving(t, "a wait", receive(t, answers))
	}
	if !receive(t, lost) || d.Waiters() != 0 || d.Tracked() != 0 {
		t.Errorf("%d wait, %d keys are tracked", d.Waiters(), d.Tracked())
	}
}
