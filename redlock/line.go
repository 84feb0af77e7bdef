// One key's waiters: when is the head asked for again?
//
// The head asks the masters when it becomes the head of a line that is not known
// to be held, and again at every hint that the key may be free:
//
//   - a release through this daemon: the release and the head's question leave
//     in one flush, so nothing is wasted between two holders of one daemon;
//   - news from the masters (pool.Watch): a key that went away or changed on a
//     quorum, or the moment at which the copies of a quorum will have expired;
//   - a timer, for news that were lost.
//
// A hint is only a hint: the grant is always decided on the masters. A hint that
// comes while the head's question is under way is remembered and asked about
// afterwards, so none falls between a question and its answer.
package redlock

import (
	"errors"
	"time"

	"redlockd/pool"
)

const (
	// settling is how long a line behind a lock that was granted here waits
	// before it asks the masters for news: most such locks are released here,
	// and then the news would be of our own doing.
	settling = 50 * time.Millisecond
	// pollWatched and pollBlind bound what a lost piece of news costs, with a
	// quorum of masters watched and without.
	pollWatched = 5 * time.Second
	pollBlind   = 500 * time.Millisecond
	// streakLimit: after so many hand-overs in a row a release goes out alone, and
	// the head asks after letPass, so that waiters of other daemons are served, too.
	streakLimit = 256
	letPass     = 2 * time.Millisecond
	// firstTrouble and lastTrouble are the delays after undecided questions.
	firstTrouble = 20 * time.Millisecond
	lastTrouble  = time.Second
)

// line is the waiters of one key. Everything is guarded by waits.mu.
type line struct {
	waits *waiters
	lineID
	keys  []Key
	group *pool.Group

	head, tail *waiter
	length     int
	asked      *waiter // whose question is with the masters
	hinted     bool    // the key may have become free since it was asked
	streak     int     // hand-overs in a row
	troubles   int     // undecided questions in a row …
	trouble    error   // … and why the last of them was not decided, nil if it was
	known      bool    // a question has been decided

	keep   pool.Timer // of FAIR, see keepStanding
	alarm  pool.Timer // nil until the first is set
	wakeAt time.Duration
	news   news
}

// insertLocked puts a waiter at the end, or where its ticket belongs.
func (ln *line) insertLocked(w *waiter) {
	after := ln.tail
	for ln.fair && after != nil && after.request.stand.ticket > w.request.stand.ticket {
		after = after.prev
	}
	w.line, w.prev = ln, after
	if after == nil {
		w.next, ln.head = ln.head, w
	} else {
		w.next, after.next = after.next, w
	}
	if w.next == nil {
		ln.tail = w
	} else {
		w.next.prev = w
	}
	ln.length++
}

func (ln *line) unlinkLocked(w *waiter) {
	if w.prev == nil {
		ln.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		ln.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	ln.length--
}

// dropIfDoneLocked forgets a line with nobody in it and nothing under way.
func (ln *line) dropIfDoneLocked() {
	if ln.head != nil || ln.asked != nil {
		return
	}
	for _, timer := range []pool.Timer{ln.alarm, ln.keep} {
		if timer != nil {
			timer.Stop()
		}
	}
	ln.ignoreNewsLocked()
	ln.waits.forgetLocked(ln)
}

// askedLocked notes that the waiter's question is about to leave.
func (ln *line) askedLocked(w *waiter) {
	ln.asked, ln.hinted = w, false
	ln.ignoreNewsLocked()
}

// ask puts the waiter's question to the masters; b may be nil.
func (ln *line) ask(b *Batch, w *waiter) {
	ask := ln.waits.locker.Lock
	if ln.looks {
		ask = ln.waits.locker.glance
	}
	ask(b, w.request, func(g Grant, err error) { ln.decided(w, g, err) })
}

// handOverLocked is the waiter who asks together with a release, if any.
func (ln *line) handOverLocked() *waiter {
	switch {
	case ln.asked != nil:
		ln.hinted = true
		return nil
	case ln.head == nil:
		return nil
	}
	if ln.streak++; ln.streak > streakLimit {
		ln.streak = 0
		ln.news.due = false // it is to ask for the key
		ln.wakeLocked(letPass)
		return nil
	}
	ln.askedLocked(ln.head)
	return ln.head
}

// decided takes the masters' answer to the waiter's question.
func (ln *line) decided(w *waiter, g Grant, err error) {
	s := ln.waits
	s.mu.Lock()
	ln.asked = nil
	left := w.over
	w.notes(err)
	stays := !left && (errors.Is(err, ErrHeld) || undecidedError(err)) && s.locker.clock.Now() < w.end && !s.ended
	if stays {
		w.trouble = nil // from here on its line knows
		if errors.Is(err, ErrHeld) {
			if keys := s.cycleLocked(w); keys != nil {
				stays, err = false, &Deadlock{Keys: keys}
			}
		}
	}
	if !stays && !left {
		s.removeLocked(w)
	}
	next := ln.nextLocked(g, err)
	ln.dropIfDoneLocked()
	s.mu.Unlock()
	if !stays && !left {
		w.stepOut()
	}
	switch {
	case stays:
	case !left:
		w.done(g, err)
	case err == nil:
		s.locker.unheard(g) // and its release hands over to the next
	}
	if next != nil {
		ln.ask(nil, next)
	}
}

// nextLocked is who asks now that an answer has come; nil sets an alarm instead.
func (ln *line) nextLocked(g Grant, err error) *waiter {
	head := ln.head
	undecided := undecidedError(err)
	if undecided {
		ln.trouble = err
	} else {
		ln.troubles, ln.trouble, ln.known = 0, nil, true
	}
	switch {
	case head == nil:
		return nil
	case undecided:
		delay := min(lastTrouble, firstTrouble<<min(ln.troubles, 8))
		ln.troubles++
		ln.wakeLocked(ln.spread(delay))
		return nil
	case err == nil && g.mode == Exclusive && !ln.hinted:
		// Held by whom we have just served; if its client has left, its release follows.
		if ln.fair { // the next one may stand in another daemon's line
			ln.watchLocked(0)
		} else {
			ln.watchLocked(settling)
		}
		return nil
	case errors.Is(err, ErrHeld) && !ln.hinted:
		ln.streak = 0
		ln.watchLocked(0)
		ln.news.behind = errors.Is(err, errBehind)
		return nil
	}
	ln.askedLocked(head)
	return head
}

// wakeLocked sets the alarm.
func (ln *line) wakeLocked(delay time.Duration) {
	clock := ln.waits.locker.clock
	ln.wakeAt = clock.Now() + delay
	if ln.alarm == nil {
		ln.alarm = clock.AfterFunc(delay, ln.rings)
		return
	}
	ln.alarm.Reset(delay)
}

// rings is the alarm: time to watch, or to ask.
func (ln *line) rings() {
	s := ln.waits
	s.mu.Lock()
	if ln.asked != nil || ln.head == nil {
		s.mu.Unlock()
		return
	}
	if early := ln.wakeAt - s.locker.clock.Now(); early > 0 { // it was set anew while it rang, or its clock runs fast
		ln.alarm.Reset(early)
		s.mu.Unlock()
		return
	}
	if ln.news.due {
		ln.watchLocked(0)
		s.mu.Unlock()
		return
	}
	w := ln.head
	ln.askedLocked(w)
	s.mu.Unlock()
	ln.ask(nil, w)
}
