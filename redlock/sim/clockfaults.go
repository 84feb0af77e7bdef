package sim

import (
	"slices"
	"time"

	"redlockd/pool"
)

// absent sets a master's clock while no daemon is connected to it.
func absent(w *World) {
	if !w.overAge() {
		return
	}
	s := w.anyServer()
	away := w.between(300*time.Millisecond, 500*time.Millisecond)
	for _, d := range w.daemons {
		d.blocked[s] = w.now + away
	}
	by := int64(w.between(60*time.Millisecond, 430*time.Millisecond) / time.Microsecond)
	if s.offset > s.home {
		by = s.home - s.offset // and back, next time
	}
	w.after(away*9/10, nil, func() { s.set(by) })
}

// oversleep stops a daemon, and while its commands are on their way it sets the clocks
// of a quorum ahead, none like another, by less than the daemon sleeps. The replies that
// the daemon reads in the end could come from the old clocks, only later. Next time the
// clocks are set back.
func oversleep(w *World) {
	d := w.daemons[w.random.IntN(len(w.daemons))]
	if d.paused > w.now || !w.overAge() {
		return
	}
	by := w.between(2*masterTimeout, 3*masterTimeout)
	for i, at := range w.random.Perm(len(w.servers))[:pool.Quorum(len(w.servers))] {
		s, set := w.servers[at], int64((by+time.Duration(i)*masterTimeout/2)/time.Microsecond)
		if s.offset > s.home {
			set = s.home - s.offset
		}
		s.set(set)
	}
	d.pause(by + masterTimeout + w.between(0, masterTimeout))
}

// doze stops a daemon whose acquires are on their way to a quorum, for longer than the master
// timeout, and sets the clocks of these masters ahead by more than the daemon sleeps and copies
// outlast leases. So copies of running leases end before the acquires, whose answers are read late.
func doze(w *World) {
	d := w.daemons[w.random.IntN(len(w.daemons))]
	if d.paused > w.now {
		return
	}
	var asked []*server
	for _, s := range w.servers {
		if l := s.newestLink(d); l != nil && slices.ContainsFunc(l.flights, func(f *flight) bool { return !f.orphan && f.done == 0 && f.acquires() }) {
			asked = append(asked, s)
		}
	}
	if len(asked) < pool.Quorum(len(w.servers)) || !w.overAge() {
		return
	}
	nap := masterTimeout + w.between(10*time.Millisecond, masterTimeout)
	for i, s := range asked[:pool.Quorum(len(w.servers))] {
		set := int64((nap + masterTimeout + 50*time.Millisecond + time.Duration(i)*masterTimeout/2) / time.Microsecond)
		if s.offset > s.home {
			set = s.home - s.offset
		}
		s.set(set)
	}
	d.pause(nap)
}

// acquires reports whether the flight has a lock's command.
func (f *flight) acquires() bool {
	return slices.ContainsFunc(f.commands, func(c pool.Command) bool { return c.Args[0] == "SET" })
}

// stepClock sets a master's clock. A step that is undone is undone only after
// every daemon has read the clock meanwhile: one that no daemon could see is beyond
// what is promised.
func stepClock(w *World) {
	s := w.anyServer()
	if !s.up || s.stopped || len(s.steps) > 0 {
		return
	}
	by := int64(w.between(-400*time.Millisecond, 1200*time.Millisecond) / time.Microsecond)
	s.set(by)
	s.steps = append(s.steps, &clockStep{at: w.now, by: by, seen: map[*daemon]bool{}})
	if w.chance(2) {
		s.readClock(int64(w.now / time.Microsecond))
		s.expireActively()
	}
	w.after(w.between(120*time.Millisecond, 900*time.Millisecond), nil, s.undo)
}
