package renew

// renewals.go schedules the renewals of holds and handles their results.
//
// Under contention only a bare quorum may hold a new lock, and losing one of those
// masters would end the lease although a majority is reachable. A renewal creates the
// missing copies. It is therefore due early in two cases: when a master has refused its
// copy, in the ballot or later, and when a master had none soon after the ballot.

import (
	"container/heap"
	"errors"
	"time"

	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
)

const (
	// renewalWindow is how far apart renewals may be due and still leave together.
	renewalWindow = 4 * time.Millisecond
	// minRenewal is the shortest renewal: what is less is left to run out.
	minRenewal = 10 * time.Millisecond
	// maxRenewals is how many renewals are queued at once.
	maxRenewals = 1024
	// afterRefusal is the earliest time after a master's refusal at which the daemon
	// retries there. A competitor's ballot on that master has failed, too, and takes its
	// copy back once it is decided. The retry is early, because until then only a bare
	// quorum holds the lock. It is not so early that the renewal window removes the
	// delay.
	afterRefusal = 2 * renewalWindow
	// maxSleep bounds the timer: it stands still while the machine is suspended, and leases run out.
	// The holders are notified so soon after that.
	maxSleep = 80 * time.Millisecond
	// afterBallot is how long after its ballot a hold is checked: by then masters have
	// answered.
	afterBallot = 50 * time.Millisecond
)

// scheduleLocked sets when the hold is due next. Once no renewal is left, that is the end
// of its validity.
func (hs *Holds) scheduleLocked(h *hold, due time.Duration) {
	hs.queueLocked(h, due)
	hs.setTimerLocked()
}

func (hs *Holds) queueLocked(h *hold, due time.Duration) {
	if due >= h.stop {
		due = h.until
	}
	h.due = min(due, h.until)
	heap.Fix(&hs.queue, h.index)
}

func (hs *Holds) setTimerLocked() {
	if len(hs.queue) == 0 {
		return
	}
	first := hs.queue[0].due
	if hs.timerAt != 0 && hs.timerAt <= first {
		return
	}
	now := hs.engine.Clock.Now()
	delay := min(max(first-now, 0), maxSleep)
	hs.timerAt = now + delay
	if hs.timer == nil {
		hs.timer = hs.engine.Clock.AfterFunc(delay, hs.onTimer)
		return
	}
	hs.timer.Reset(delay)
}

// onTimer handles every hold that is due about now.
func (hs *Holds) onTimer() {
	var lost, renewing []*hold
	hs.mu.Lock()
	now := hs.engine.Clock.Now()
	hs.timerAt = 0
	for n := 0; n < maxRenewals && len(hs.queue) > 0 && hs.queue[0].due <= now+renewalWindow; n++ {
		h := hs.queue[0]
		switch {
		case now >= h.until: // this process was paused, or no renewal was decided for too long
			hs.endLocked(h)
			lost = append(lost, h)
		case h.last-now < minRenewal: // the timer was late
			hs.queueLocked(h, h.until)
		case h.due >= h.until: // not yet over: its last milliseconds
			hs.queueLocked(h, h.until)
			n = maxRenewals
		case h.fullyCopied():
			hs.queueLocked(h, h.grant.Began()+h.grant.TTL()/3)
			hs.watchLocked(h)
		case h.until-now > h.grant.TTL()/4 && hs.leases.IsBusy(&h.grant):
			// A renewal would move the expiry, and then that acquire's undo would miss
			// the copy.
			hs.queueLocked(h, now+2*renewalWindow)
		default:
			hs.unwatchLocked(h)
			h.renewing = true
			hs.queueLocked(h, h.until) // no master may answer before that
			renewing = append(renewing, h)
		}
	}
	hs.setTimerLocked()
	hs.mu.Unlock()
	var batch engine.Batch
	for _, h := range renewing {
		hs.leases.Renew(&batch, &h.grant, min(h.grant.TTL(), h.last-now), h.onRenewed)
	}
	batch.Send()
	for _, h := range lost {
		h.onLost(h.reason(now))
	}
}

// fullyCopied checks, once, whether the ballot made a copy on every master. If so, there
// is time until the first renewal.
func (h *hold) fullyCopied() bool {
	made := h.ballot
	h.ballot = nil
	return made != nil && made.CopiedEverywhere()
}

func (h *hold) onRenewed(g lease.Grant, err error) {
	s := h.holds
	now := s.engine.Clock.Now()
	s.mu.Lock()
	if h.ended {
		s.mu.Unlock()
		return
	}
	h.renewing = false
	switch {
	case err == nil:
		h.until = max(h.until, g.Until())
		s.scheduleLocked(h, h.nextDue(g.Began()+h.grant.TTL()/3))
		s.watchLocked(h)
	case errors.Is(err, engine.ErrNotHeld):
		s.endLocked(h)
		s.mu.Unlock()
		h.onLost(ErrLostHeld)
		return
	default: // not decided: the old validity stands, and there is time to try again
		s.scheduleLocked(h, h.nextDue(now+max(h.grant.TTL()/20, 2*time.Millisecond)))
	}
	s.mu.Unlock()
}

// Copied records whether a master has taken a copy: in the ballot, or later if the
// master lost its copy or never had one. A competitor may have a copy there for as long
// as a ballot lasts. If a master of the quorum went away meanwhile, the lease would be
// over. So the renewal does not wait until a third of the TTL has passed. Each renewal
// that a master refuses doubles the wait for the next one: the other copy may also belong
// to a dead client.
func (hs *Holds) Copied(ids []engine.LeaseID, taken bool) {
	if hs.count.Load() == 0 {
		return
	}
	now := hs.engine.Clock.Now()
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for _, id := range ids {
		h := hs.byID[id]
		switch {
		case h == nil:
			continue
		case taken:
			h.refusalPause = 0
			continue
		}
		wait := min(max(afterRefusal, 2*h.refusalPause), h.grant.TTL()/3)
		switch due := now + wait; {
		case due >= h.stop:
			continue
		case h.renewing:
			h.renewBy = due
		case due < h.due:
			hs.moveLocked(h, due)
		default:
			continue
		}
		h.refusalPause = wait
	}
}

// nextDue returns the time at which the next renewal is due, given its regular time.
func (h *hold) nextDue(due time.Duration) time.Duration {
	if h.renewBy > 0 {
		due = min(due, h.renewBy)
		h.renewBy = 0
	}
	return due
}
