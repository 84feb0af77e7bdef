package redlock

// renewals.go: when is a hold due, and what follows from a renewal?
//
// Beside contenders a quorum may be all that has a copy at first, so that the loss
// of one master ends the lease, although a majority is there. A renewal gives the
// others theirs. So it is asked for early where a master has refused its copy, in
// the ballot or later, and where one had none to show soon after the ballot.

import (
	"container/heap"
	"errors"
	"time"
)

const (
	// gathering is how far apart renewals may be due and still leave together.
	gathering = 4 * time.Millisecond
	// renewals is how many of them are queued at once.
	renewals = 1024
	// afterRefusal is how long after a master's refusal it is asked again at the
	// earliest: whoever competed there has been refused, too, and takes its copy back
	// when it knows. In a hurry, because a bare quorum is all there is until then; but
	// not so soon that gathering leaves nothing of it.
	afterRefusal = 2 * gathering
	// afterBallot is how long after its ballot a hold is looked at: by then masters
	// have answered.
	afterBallot = 50 * time.Millisecond
)

// scheduleLocked sets when the hold is looked at next. Once no renewal is left,
// that is the end of its validity.
func (s *holds) scheduleLocked(h *Hold, due time.Duration) {
	s.queueLocked(h, due)
	s.alarmLocked()
}

func (s *holds) queueLocked(h *Hold, due time.Duration) {
	if due >= h.stop {
		due = h.until
	}
	h.due = min(due, h.until)
	heap.Push(&s.queue, h)
}

// alarmLocked lets the alarm ring when the first hold is due.
func (s *holds) alarmLocked() {
	if len(s.queue) == 0 {
		return
	}
	first := s.queue[0].due
	if s.at != 0 && s.at <= first {
		return
	}
	s.at = first
	delay := max(first-s.locker.clock.Now(), 0)
	if s.alarm == nil {
		s.alarm = s.locker.clock.AfterFunc(delay, s.rings)
		return
	}
	s.alarm.Reset(delay)
}

// rings looks at every hold that is due about now.
func (s *holds) rings() {
	l := s.locker
	now := l.clock.Now()
	var lost, renewing []*Hold
	s.mu.Lock()
	s.at = 0
	for n := 0; n < renewals && len(s.queue) > 0 && s.queue[0].due <= now+gathering; n++ {
		h := heap.Pop(&s.queue).(*Hold)
		switch {
		case now >= h.until: // this process was paused, or nobody could decide for too long
			s.endLocked(h)
			lost = append(lost, h)
		case h.due >= h.until: // not yet over: its last milliseconds
			h.due = h.until
			heap.Push(&s.queue, h)
			n = renewals
		case h.settled():
			s.queueLocked(h, h.grant.start+h.grant.ttl/3)
			s.watchLocked(h)
		case h.grant.attempt != nil && h.until-now > h.grant.ttl/4 && l.turns.taken(h.ids()):
			// What it would move the undo of that acquire could not find.
			s.queueLocked(h, now+2*gathering)
		default:
			s.unwatchLocked(h)
			renewing = append(renewing, h)
		}
	}
	s.alarmLocked()
	s.mu.Unlock()
	var batch Batch
	for _, h := range renewing {
		l.inFlight.Add(1)
		l.extend(&batch, h.renewal(), h.renewed)
	}
	batch.Send()
	for _, h := range lost {
		h.isLost(h.reason(now))
	}
}

// settled looks at the ballot, once: whether every master has a copy, so that there
// is time until the first renewal.
func (h *Hold) settled() bool {
	made := h.made
	h.made = nil
	return made != nil && made.everywhere()
}

// renewal is what is asked for a hold. Should the lease be released while it is
// being asked, it comes before the release on every master, or finds nothing.
func (h *Hold) renewal() ExtendRequest {
	return ExtendRequest{DB: h.grant.db, Key: h.grant.Key, More: h.grant.More, Token: h.grant.Token, TTL: h.grant.ttl, wrote: &h.terms.wrote}
}

// renewed takes the masters' answer to a renewal.
func (h *Hold) renewed(g Grant, err error) {
	s := h.holds
	now := s.locker.clock.Now()
	s.mu.Lock()
	if h.ended {
		s.mu.Unlock()
		return
	}
	switch {
	case err == nil:
		h.until = max(h.until, g.until)
		s.scheduleLocked(h, h.soonest(g.start+g.ttl/3))
		s.watchLocked(h)
	case errors.Is(err, ErrNotHeld):
		s.endLocked(h)
		s.mu.Unlock()
		h.isLost(ErrLostHeld)
		return
	default: // not decided: the old validity stands, and there is time to try again
		s.scheduleLocked(h, h.soonest(now+max(h.grant.ttl/20, 2*time.Millisecond)))
	}
	s.mu.Unlock()
}

// heard of a master whether it has taken a copy: in the ballot, or one that it has lost
// or never had. Somebody who competes may have one there for as long as a ballot lasts;
// should a master of the quorum go away meanwhile, the lease would be over, so the
// refusal is not left to stand until a third of the ttl has passed. Each renewal that
// meets one waits twice as long for the next: what is in the way may also be a dead
// client's.
func (s *holds) heard(ids []lockID, taken bool) {
	if s.count.Load() == 0 {
		return
	}
	now := s.locker.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		h := s.byID[id]
		switch {
		case h == nil:
			continue
		case taken:
			h.wait = 0
			continue
		}
		wait := min(max(afterRefusal, 2*h.wait), h.grant.ttl/3)
		switch due := now + wait; {
		case due >= h.stop:
			continue
		case h.index < 0: // a renewal is under way
			h.early = due
		case due < h.due:
			s.moveLocked(h, due)
		default:
			continue
		}
		h.wait = wait
	}
}

// soonest is when the next renewal is due that is due then as a rule.
func (h *Hold) soonest(due time.Duration) time.Duration {
	if h.early > 0 {
		due = min(due, h.early)
		h.early = 0
	}
	return due
}
