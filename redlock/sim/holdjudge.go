package sim

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"redlockd/redlock"
)

// What the judge holds leases with HOLD to: their holder relies on them until it
// is told that they are over, which happens once; no other client gets the lock
// before; and nothing is renewed after it, nor past the longest time.

// holdRecord is a lease that a daemon renews.
type holdRecord struct {
	client  *waiting
	daemon  *daemon
	keys    []string
	token   string        // "" = not granted
	began   time.Duration // granted; its longest time counts from when it was asked for
	longest time.Duration
	told    bool          // that it is over
	at      time.Duration // when
}

// holds adds to a request that the lease is to be renewed.
func (j *judge) holds(c *waiting, d *daemon, keys []string, r *redlock.LockRequest) *holdRecord {
	w := j.world
	h := &holdRecord{client: c, daemon: d, keys: keys}
	if w.chance(3) {
		h.longest = w.between(10*time.Millisecond, 3*w.Scenario.MaxTTL)
	}
	r.Hold = &redlock.HoldTerms{Longest: h.longest, Over: func(_ redlock.Grant, reason error) {
		if !d.dead {
			j.holdOver(h, reason)
		}
	}}
	return h
}

// granted: its client knows the token.
func (h *holdRecord) granted(token string) {
	j := h.client.world.judge
	h.token, h.began = token, j.world.now
	j.waiting.holds[token] = h
}

// lives tells whether the holder relies on its lease at a moment: until it is
// told of the end, as long as its daemon could tell.
func (h *holdRecord) lives(now time.Duration) bool {
	return h != nil && !h.told && !h.daemon.dead && h.daemon.resumed < now
}

// holdOver is called when a daemon says that a lease is renewed no more.
func (j *judge) holdOver(h *holdRecord, reason error) {
	w := j.world
	j.checked++
	w.trace.note(h.keys[0], "daemon %d renews %s no more: %v", h.daemon.index, abbreviate(h.token), reason)
	if h.told {
		w.violate("holds", h.keys[0], "the end of a lease with HOLD was told twice")
	}
	if h.told, h.at = true, w.now; reason == nil || h.token == "" {
		return
	}
	for _, key := range h.keys {
		t := j.token(key, h.token)
		t.until, t.reads = min(t.until, w.now), min(t.reads, w.now)
		if t.release == 0 {
			t.release = j.tick() // what is left is being given back
		}
	}
	switch {
	case errors.Is(reason, redlock.ErrLostMax) && (h.longest == 0 || w.now+grace < h.began+h.longest):
		w.violate("holds", h.keys[0], "a lease ended with its longest time before that was over")
	case w.Scenario.Reliable && !errors.Is(reason, redlock.ErrLostMax):
		w.violate("holds", h.keys[0], "a lease with HOLD was lost without any fault: "+reason.Error())
	}
	if c := h.client; !c.busy() && c.tenure != nil && string(c.tenure.token) == h.token {
		c.tenure = nil
	}
}

// mustHear: somebody else has the lock, after it was deleted by hand; the next
// renewal finds out, or the validity ends.
func (j *judge) mustHear(h *holdRecord) {
	w := j.world
	w.after(w.Scenario.MaxTTL+grace, h.daemon, func() {
		if h.lives(w.now) {
			w.violate("holds", h.keys[0], fmt.Sprintf("daemon %d has not told that %s is lost, although somebody else has got the lock", h.daemon.index, abbreviate(h.token)))
		}
	})
}

// ended is called when a connection with HOLD has ended.
func (j *judge) ended(token string) {
	if h := j.waiting.holds[token]; !h.told {
		j.world.violate("holds", h.keys[0], "the connection has ended, and its lease is renewed")
	}
}

// renewing is called when a master is asked to prolong a lease; what was sent
// within a second of its end may have been written before it.
func (j *judge) renewing(d *daemon, words []string, sent time.Duration) {
	n, _ := strconv.Atoi(words[2])
	h := j.waiting.holds[words[3+n]]
	if h == nil || h.daemon != d {
		return
	}
	const slack = time.Second
	switch {
	case h.told && sent > h.at+slack:
		j.world.violate("holds", h.keys[0], fmt.Sprintf("daemon %d renews %s, whose end it told %.3f ms ago", d.index, abbreviate(h.token), ms(sent-h.at)))
	case h.longest > 0 && sent > max(h.began+h.longest, d.resumed)+slack+late:
		j.world.violate("holds", h.keys[0], fmt.Sprintf("daemon %d renews %s past its longest time", d.index, abbreviate(h.token)))
	}
}
