package sim

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"redlockd/pool"
	"redlockd/redlock"
	"redlockd/redlock/sim/fake"
)

// What the checker requires of leases with HOLD: their holder relies on them until it
// receives that they are over, which happens once; no other client gets the lock
// before; what an extension promised stands after it; and nothing is renewed after it,
// nor past the maximum time.

// holdRecord is a lease that a daemon renews.
type holdRecord struct {
	client  *waiting
	daemon  *daemon
	hold    redlock.Hold
	keys    []string
	token   string        // "" = not granted
	began   time.Duration // granted; its maximum time counts from the request
	jumped  time.Duration // what its daemon's clock had jumped by then
	maxTime time.Duration
	ended   bool          // the client received that it is over
	endedAt time.Duration // when
	lost    bool          // before its client let go
}

// holds adds to a request that the lease is to be renewed.
func (j *checker) holds(c *waiting, d *daemon, keys []string, r *redlock.LockRequest) *holdRecord {
	w := j.world
	h := &holdRecord{client: c, daemon: d, keys: keys}
	if w.chance(3) {
		h.maxTime = w.between(10*time.Millisecond, 3*w.Scenario.MaxTTL)
	}
	r.Hold = &redlock.HoldTerms{MaxTime: h.maxTime, OnBegin: func(hold redlock.Hold) { h.hold = hold }, OnEnd: func(_ redlock.Grant, reason error, _ time.Duration) {
		if !d.dead {
			j.holdOver(h, reason)
		}
	}}
	return h
}

// granted is called when its client has received the token.
func (h *holdRecord) granted(token string) {
	j := h.client.world.checker()
	h.token, h.began, h.jumped = token, j.world.now, h.daemon.clock.jumped
	j.waiting.holds[token] = h
}

// active reports whether the holder relies on its lease at a moment: until it receives
// the end, as long as its daemon could send it.
func (h *holdRecord) active(now time.Duration) bool {
	return h != nil && !h.ended && !h.daemon.dead && h.daemon.resumed < now
}

// holdOver is called when a daemon reports that a lease is renewed no more.
func (j *checker) holdOver(h *holdRecord, reason error) {
	w := j.world
	j.checked++
	w.trace.note(h.keys[0], "daemon %d renews %s no more: %v", h.daemon.index, abbreviate(h.token), reason)
	if h.ended {
		w.violate("holds", h.keys[0], "the end of a lease with HOLD was reported twice")
	}
	if h.ended, h.endedAt = true, w.now; reason == nil || h.token == "" {
		return
	}
	for _, key := range h.keys {
		t := j.token(key, h.token)
		until := w.now
		if h.lost = true; !errors.Is(reason, redlock.ErrLostHeld) {
			until = max(until, t.extendedTo) // what extensions promised stands
		}
		t.until, t.reads = min(t.until, until), min(t.reads, until)
	}
	switch {
	case errors.Is(reason, redlock.ErrLostMax) && (h.maxTime == 0 || w.now+h.daemon.clock.jumped-h.jumped+grace < h.began+h.maxTime):
		w.violate("holds", h.keys[0], "a lease ended with its maximum time before that was over")
	case w.Scenario.Reliable && !errors.Is(reason, redlock.ErrLostMax):
		w.violate("holds", h.keys[0], "a lease with HOLD was lost without any fault: "+reason.Error())
	}
	if c := h.client; !c.busy() && c.tenure != nil && string(c.tenure.token) == h.token {
		c.tenure = nil
	}
}

// onQuorum reports whether a quorum of masters has the lock of a token. Then that is newer than what
// another client has just received, whose copies were deleted before its answer came.
func (w *World) onQuorum(t *tokenState) bool {
	copies := 0
	for _, s := range w.servers {
		if v := s.Memory[t.key]; v != nil && v.Kind == fake.String && v.Text == t.token {
			copies++
		}
	}
	return copies >= pool.Quorum(len(w.servers))
}

// mustEnd: another client has the lock, after it was deleted by hand. The next
// renewal detects it, or the validity ends.
func (j *checker) mustEnd(h *holdRecord) {
	w := j.world
	w.after(w.Scenario.MaxTTL+grace, h.daemon, func() {
		if h.active(w.now) {
			w.violate("holds", h.keys[0], fmt.Sprintf("daemon %d has not reported that %s is lost, although another client has got the lock", h.daemon.index, abbreviate(h.token)))
		}
	})
}

// ended is called when a connection with HOLD has ended.
func (j *checker) ended(token string) {
	if h := j.waiting.holds[token]; !h.ended {
		j.world.violate("holds", h.keys[0], "the connection has ended, and its lease is renewed")
	}
}

// renewing is called when a master receives a renewal of a lease; what was sent
// within a second of its end may have been written before it.
func (j *checker) renewing(d *daemon, words []string, sent time.Duration) {
	const slack = time.Second
	n, _ := strconv.Atoi(words[2])
	for i := 3 + n; i+1 < len(words); i += 2 { // token and end, of each extension of the call
		h := j.waiting.holds[words[i]]
		switch {
		case h == nil || h.daemon != d:
		case h.ended && sent > h.endedAt+slack:
			j.world.violate("holds", h.keys[0], fmt.Sprintf("daemon %d renews %s, whose end it reported %.3f ms ago", d.index, abbreviate(h.token), ms(sent-h.endedAt)))
		case h.maxTime > 0 && sent > max(h.began+h.maxTime, d.resumed)+slack+masterTimeout:
			j.world.violate("holds", h.keys[0], fmt.Sprintf("daemon %d renews %s past its maximum time", d.index, abbreviate(h.token)))
		}
	}
}
