// handClock moves time in these tests by hand: nothing is due before the test moves it.

package pool

import (
	"slices"
	"sync"
	"testing/synctest"
	"time"
)

// handClock is a Clock that stands still between two moves.
type handClock struct {
	mu      sync.Mutex
	now     time.Duration
	pending []*handTimer
}

type handTimer struct {
	clock *handClock
	due   time.Duration
	f     func()
}

var (
	_ Clock = (*handClock)(nil)
	_ Timer = (*handTimer)(nil)
)

func newHandClock() *handClock { return &handClock{now: time.Hour} }

func (c *handClock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) AfterFunc(d time.Duration, f func()) Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &handTimer{clock: c, due: c.now + d, f: f}
	c.pending = append(c.pending, t)
	return t
}

func (t *handTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.stopLocked()
}

func (t *handTimer) stopLocked() bool {
	i := slices.Index(t.clock.pending, t)
	if i < 0 {
		return false
	}
	t.clock.pending = slices.Delete(t.clock.pending, i, i+1)
	return true
}

func (t *handTimer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	was := t.stopLocked()
	t.due = t.clock.now + d
	t.clock.pending = append(t.clock.pending, t)
	return was
}

// pass lets time go by under a flush on its way: nothing that is due is called.
func (c *handClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += d
}

// advance moves the clock and calls what falls due, one after the other, each
// on its own goroutine and until everything in the bubble has come to rest.
func (c *handClock) advance(d time.Duration) {
	c.mu.Lock()
	end := c.now + d
	c.mu.Unlock()
	for {
		t := c.nextDue(end)
		if t == nil {
			break
		}
		go t.f()
		synctest.Wait()
	}
	c.mu.Lock()
	c.now = max(c.now, end)
	c.mu.Unlock()
	synctest.Wait()
}

func (c *handClock) nextDue(end time.Duration) *handTimer {
	c.mu.Lock()
	defer c.mu.Unlock()
	var first *handTimer
	for _, t := range c.pending {
		if t.due <= end && (first == nil || t.due < first.due) {
			first = t
		}
	}
	if first != nil {
		first.stopLocked()
		c.now = max(c.now, first.due)
	}
	return first
}
