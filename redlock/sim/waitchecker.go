package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockd/pool"
	"redlockd/redlock"
	"redlockd/redlock/sim/fake"
)

// waitChecker records the requests that wait. What it requires of the product:
//
//	answers    every wait is answered once, at its end at the latest; one whose
//	           client has left at once, and never with a lock
//	order      waiters of one daemon and key are granted in order of arrival;
//	           no later request of any daemon that is a script, as all with FAIR are,
//	           passes a waiter that has a ticket in the queue of a quorum
//	sleep      no client waits while the key is free, for longer than a wake-up takes
//	queues     nothing of a queue is left when no client waits
type waitChecker struct {
	all       []*waitRecord            // in the order of their arrival, those that are not over
	touched   map[string]time.Duration // when a key changed last, on any master
	queued    map[*daemon]int64        // waiters that requested a ticket in a queue
	holds     map[string]*holdRecord   // by token
	ambiguous map[*daemon]bool         // whose tickets in queues cannot be told apart any more, see queued
}

// waitRecord is one request that waits, or that tries once and checks the queue.
type waitRecord struct {
	daemon     *daemon
	keys       []string
	keySet     string // the keys, sorted
	mode       redlock.Kind
	fair       bool
	token      redlock.Token // that the client chose, or its owner; "" = none
	owner      redlock.Token // of a reentrant lock; "" = of none
	waits      bool
	delay      time.Duration
	began      time.Duration
	grace      time.Duration
	end, slept time.Duration // on its daemon's clock; how long its machine had been suspended then
	over       bool
	ended      time.Duration // when it was answered; 0 = not, and its daemon lives
	free       time.Duration // since when it could have the lock; 0 = it could not

	number      int64 // its number in its daemon's queueing, 0 = none
	ticket      string
	accepted    map[*server]bool
	established time.Duration // 0 = not
	gone        bool          // out of the queue again
}

// grace is what an answer may take when a ballot is with the masters, some of which do not answer, and
// is repeated.
const grace = 1500 * time.Millisecond

// graceOf is what an answer may take when the time of a request is over. A wait of a connection that
// holds locks may have edges on the masters.
func graceOf(r *redlock.LockRequest, waits bool) time.Duration {
	if !waits || r.Owner != nil {
		return grace
	}
	return max(0, masterTimeout-r.Wait) + 5*time.Millisecond + r.Wait/100 // clocks differ in rate
}

// waitBegins is called when a daemon gets a request.
func (j *checker) waitBegins(d *daemon, keys []string, r *redlock.LockRequest, waits bool) *waitRecord {
	w, s := j.world, &j.waiting
	sorted := slices.Sorted(slices.Values(keys))
	owner := redlock.LevelOwner(r.Mode)
	record := &waitRecord{
		daemon: d, keys: keys, keySet: strings.Join(sorted, " "), mode: r.Kind(), fair: r.Fair, token: cmp.Or(r.Token, owner), owner: owner,
		waits: waits, delay: r.Linger, began: w.now, end: d.clock.Now() + r.Wait, slept: d.clock.suspended, accepted: map[*server]bool{},
	}
	if waits && r.Fair && record.token == "" {
		s.queued[d]++
		record.number = s.queued[d]
	}
	s.all = append(s.all, record)
	w.trace.note(keys[0], "daemon %d receives a request for %s, mode %d, fair %v, wait %v, token %q", d.index, record.keySet, r.Kind(), r.Fair, r.Wait, r.Token)
	record.grace = graceOf(r, waits)
	w.after(r.Wait+record.grace, d, func() { j.overdue(record) })
	if begun := j.serial; owner != "" && w.Scenario.Reliable {
		w.after(masterTimeout, d, func() { record.joinsOwner(j, begun) })
	}
	if d.drained != 0 && waits {
		j.mustEndSoon(record)
	}
	return record
}

// overdue reports a wait without an answer. A daemon that stood still answers when it
// goes on.
func (j *checker) overdue(r *waitRecord) {
	switch w := j.world; {
	case r.over:
	case r.daemon.clock.suspended > r.slept: // timers do not run meanwhile
		w.after(r.daemon.clock.suspended-r.slept, r.daemon, func() { j.overdue(r) })
		r.slept = r.daemon.clock.suspended
	case r.daemon.resumed+r.grace > w.now:
		w.after(r.daemon.resumed+r.grace-w.now, r.daemon, func() { j.overdue(r) })
	default:
		w.violate("answers", r.keys[0], fmt.Sprintf("a wait for %s was to end %.3f ms ago and has not been answered", r.keySet, ms(r.daemon.clock.Now()-r.end)))
	}
}

// joinsOwner reports a request that waits although its owner has held the key since before it.
func (r *waitRecord) joinsOwner(j *checker, begun int64) {
	for _, c := range j.lock(r.keys[0]).claims {
		if redlock.OwnerOf(redlock.Token(c.token)) == r.owner && !r.over && c.granted <= begun && c.release == 0 && c.until > j.world.now {
			j.world.violate("order", r.keys[0], fmt.Sprintf("a level of %s waits for %s beside %s", r.owner, r.keySet, c.token))
		}
	}
}

// waitEnds is called with the answer.
func (j *checker) waitEnds(r *waitRecord, g redlock.Grant, err error) {
	w, s := j.world, &j.waiting
	j.checked++
	w.trace.note(r.keys[0], "daemon %d answers the wait for %s of %.3fms by %s: %v", r.daemon.index, r.keySet, ms(r.began), abbreviate(string(g.Token)), err)
	if r.over {
		w.violate("answers", r.keys[0], fmt.Sprintf("a wait for %s was answered twice: now %v", r.keySet, err))
		return
	}
	r.ended = w.now
	if r.over = true; r.number == 0 && r.fair && r.waits && err != nil {
		s.ambiguous[r.daemon] = true // it may have a ticket that the checker has not seen yet
	}
	const inexact = 50 * time.Millisecond // the daemon reads its clock now and then
	var undecided *redlock.NoQuorum
	if left := r.end - r.daemon.clock.Now(); r.waits && left > inexact && (errors.Is(err, redlock.ErrHeld) || errors.As(err, &undecided) && undecided.Moving == nil) {
		w.violate("answers", r.keys[0], fmt.Sprintf("a wait for %s was refused %.3f ms before its end: %v", r.keySet, ms(left), err))
	}
	s.all = slices.DeleteFunc(s.all, func(other *waitRecord) bool { return other.over || other.daemon.dead })
	if err != nil {
		return
	}
	for _, other := range s.all {
		switch {
		case r.waits && !r.fair && r.token == "" && other.waits && !other.fair && other.token == "" &&
			other.daemon == r.daemon && other.keySet == r.keySet && other.began < r.began:
			w.violate("order", r.keys[0], fmt.Sprintf("a wait for %s that began at %.3f ms was granted before one in the same daemon from %.3f ms",
				r.keySet, ms(r.began), ms(other.began)))
		case r.isScript() && (r.fair || r.token == "") && r.owner == "" && other.before(r): // a token or an owner may hold the key, and pass the queue
			w.violate("order", r.keys[0], fmt.Sprintf("a request of daemon %d for %s from %.3f ms was granted before one of daemon %d for %s, which was in the queue since %.3f ms",
				r.daemon.index, r.keySet, ms(r.began), other.daemon.index, other.keySet, ms(other.established)))
		}
	}
}

// isScript reports whether the masters receive a request as a script, which checks the queue of
// FAIR, and not as a plain SET NX.
func (r *waitRecord) isScript() bool {
	return r.fair || r.token != "" || r.mode != redlock.Exclusive || len(r.keys) > 1
}

// before reports whether a waiter had its ticket in a queue before another one sent its
// request. A daemon that stood still does not lose it: a ticket lasts for three seconds
// and is refreshed once a second, also on masters that are back. No daemon and no master
// is away for the two seconds between them here.
func (r *waitRecord) before(later *waitRecord) bool {
	return r.established != 0 && !r.gone && r.established < later.began && shares(r.keys, later.keys) &&
		(r.mode != redlock.Shared || later.mode != redlock.Shared || r.owner != "")
}

// leaves is called when the client of a wait has gone.
func (j *checker) leaves(r *waitRecord, leave func()) {
	if r.over {
		leave() // too late, and must do no harm
		return
	}
	j.world.trace.note(r.keys[0], "the client of the wait for %s of %.3fms leaves daemon %d", r.keySet, ms(r.began), r.daemon.index)
	leave()
	open := 0
	for _, other := range j.waiting.all {
		if other.daemon == r.daemon && other.waits && !other.over {
			open++
		}
	}
	if kept := r.daemon.engine.Waiters(); !r.over || kept > open {
		j.world.violate("answers", r.keys[0], fmt.Sprintf("the client of a wait has left: answered %v, and its daemon counts %d waiters, of which %d are there", r.over, kept, open))
	}
}

// queued receives every ticket in a queue for which a daemon got a master's reply. A
// request with its own token takes a ticket only after it was refused without one. Its
// daemon has no other waiter then (Scenario.Chosen), so the next number is its own.
func (j *checker) queued(d *daemon, s *server, words []string, r pool.Reply, quick bool) {
	n, _ := strconv.Atoi(words[2])
	full, waiter, ticket := words[4+n], words[5+n], words[6+n]
	if full == "" {
		return // a refresh
	}
	_, digits, fair := strings.Cut(waiter, "/")
	if !fair {
		return // of a place, or of a head without FAIR
	}
	number, _ := strconv.ParseInt(digits, 36, 64)
	for _, one := range j.waiting.all {
		if one.daemon == d && one.number == 0 && one.token != "" && one.fair && one.waits && number > j.waiting.queued[d] && !j.waiting.ambiguous[d] {
			one.number, j.waiting.queued[d] = number, number
		}
		if one.daemon != d || one.number != number {
			continue
		}
		if one.ticket != ticket {
			one.ticket, one.established = ticket, 0
			clear(one.accepted)
		}
		if quick && s.doubted <= j.world.now && len(r.Items) == 1 && r.Items[0].Int == 1 {
			one.accepted[s] = true
		}
		if one.established == 0 && len(one.accepted) >= pool.Quorum(len(j.world.servers)) {
			one.established = j.world.now
		}
	}
}

// dequeued: a waiter with edges has lost its place before its answer, which waits until its edges
// are gone.
func (s *waitChecker) dequeued(d *daemon, words []string) {
	_, digits, fair := strings.Cut(words[len(words)-1], "/")
	number, _ := strconv.ParseInt(digits, 36, 64)
	for _, one := range s.all {
		if fair && one.daemon == d && one.number == number {
			one.gone = true
		}
	}
}

// checkSleep checks at intervals whether a client waits although the key is free.
func (j *checker) checkSleep() {
	w := j.world
	const every = 20 * time.Millisecond
	for _, r := range j.waiting.all {
		if r.over || r.daemon.dead || !r.waits {
			continue
		}
		if r.daemon.resumed+every > w.now || !r.couldBeGranted(j) {
			r.free = 0
			continue
		}
		since := max(r.free, r.began, r.daemon.resumed)
		for _, key := range r.keys {
			since = max(since, j.waiting.touched[key])
		}
		if r.free == 0 {
			r.free = w.now
		} else if w.now-since > w.Scenario.Asleep {
			w.violate("sleep", r.keys[0], fmt.Sprintf("daemon %d lets a client wait for %s, fair %v, although a quorum of masters has had no copy for %.3f ms",
				r.daemon.index, r.keySet, r.fair, ms(w.now-since)))
		}
	}
	w.after(every, nil, j.checkSleep)
}

// couldBeGranted reports whether a quorum of masters that can be reached keeps nothing
// at the keys of a request. It does not change what it reads. A request behind one with a ticket
// that waits for another key, too, has to leave the key free, and so has one that stands
// behind it in its daemon. Among requests for permits, one slot that is free is enough.
func (r *waitRecord) couldBeGranted(j *checker) bool {
	w := j.world
	free, slots := [permits]int{}, permits
	if slices.ContainsFunc(j.waiting.all, func(other *waitRecord) bool {
		return other.fair && !other.over && other.keySet != r.keySet && shares(other.keys, r.keys)
	}) {
		return false
	}
	if slices.ContainsFunc(j.waiting.all, func(other *waitRecord) bool { return other.mode != redlock.Permits && shares(other.keys, r.keys) }) {
		slots = 1
	}
	if slices.ContainsFunc(w.servers, func(s *server) bool { return slices.ContainsFunc(r.keys, s.hasWindow) }) {
		return false
	}
	for _, s := range w.servers {
		now := s.now()
		if !s.up || s.stopped || s.doubted > w.now || r.daemon.blocked[s] > w.now {
			continue
		}
		for slot := range slots {
			if !slices.ContainsFunc(r.keys, func(key string) bool {
				v := s.Memory[key]
				return v != nil && (v.Expires == 0 || v.Expires >= now) && (slots == 1 || v.Kind != fake.Hash || slotTaken(v, slot+1, now))
			}) {
				free[slot]++
			}
		}
	}
	return slices.Max(free[:]) >= pool.Quorum(len(w.servers))
}

// slotTaken reports whether one of the permits at a key is given.
func slotTaken(v *fake.Value, slot int, now int64) bool {
	for _, one := range v.Fields {
		if one.Name == strconv.Itoa(slot) {
			ends, _, _ := strings.Cut(one.Value, " ")
			at, _ := strconv.ParseInt(ends, 10, 64)
			return at >= now
		}
	}
	return false
}

// queues checks what is left of queues when no client waits.
func (j *checker) queues() {
	for _, s := range j.world.servers {
		s.readClock(int64(j.world.now / time.Microsecond))
		for _, key := range slices.Sorted(func(yield func(string) bool) {
			for key := range s.Memory {
				if !yield(key) {
					return
				}
			}
		}) {
			if strings.HasPrefix(key, "redlockd:q") && s.Lookup(key) != nil {
				j.world.violate("queues", key, fmt.Sprintf("master %s keeps %d waiters in the queue %q although no client waits",
					s.name, len(s.Memory[key].Scores), key))
			}
		}
	}
}

// executed implements observer: of commands, it checks those of waits.
func (j *checker) executed(f *flight, words []string, r pool.Reply, received bool) {
	w, l := j.world, f.link
	if w.Scenario.MaxWait == 0 || l.daemon == nil || words[0] != "EVALSHA" {
		return
	}
	switch kind := w.lab.kind(words[1]); {
	case kind == scriptEnlist:
		j.queued(l.daemon, l.server, words, r, received && w.now-f.sent < masterTimeout*4/5)
	case kind == scriptDequeue && w.Scenario.MaxCycle > 0:
		j.waiting.dequeued(l.daemon, words)
	case kind == scriptExtend && !received:
		j.renewing(l.daemon, words, f.sent)
	}
}

// touched implements observer.
func (j *checker) touched(key string) { j.waiting.touched[key] = j.world.now }
