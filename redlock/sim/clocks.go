package sim

import (
	"time"

	"redlockd/pool"
)

// absent: a master's clock is set while no daemon is connected to it.
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
	w.after(away*9/10, nil, func() {
		w.trace.note("", "the clock of master %s is set by %d ms, unseen", s.name, by/1000)
		s.offset += by
	})
}

// oversleep: a daemon stands still, and while its questions are on their way the
// clocks of a quorum are set ahead, none like another, by less than the daemon
// sleeps: what it hears in the end may have been said by the clocks that it knew,
// only later. Next time they are set back.
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
		w.trace.note("", "the clock of master %s is set by %d ms", s.name, set/1000)
		s.offset += set
	}
	d.paused = w.now + by + masterTimeout + w.between(0, masterTimeout)
	d.resumed = max(d.resumed, d.paused)
	w.trace.note("", "daemon %d is stopped until %.3fms", d.index, ms(d.paused))
}

// step is a clock that was set, and who has seen it since.
type clockStep struct {
	at   time.Duration
	by   int64
	seen map[*daemon]bool
}

// stepClock sets a master's clock. A step that is undone is undone only after
// every daemon has read the clock meanwhile: one that nobody could see is beyond
// what is promised.
func stepClock(w *World) {
	s := w.anyServer()
	if !s.up || s.stopped || len(s.steps) > 0 {
		return
	}
	by := int64(w.between(-400*time.Millisecond, 1200*time.Millisecond) / time.Microsecond)
	w.trace.note("", "the clock of master %s is set by %d ms", s.name, by/1000)
	s.offset += by
	s.steps = append(s.steps, &clockStep{at: w.now, by: by, seen: map[*daemon]bool{}})
	if w.chance(2) {
		s.readClock(int64(w.now / time.Microsecond))
		s.expireActively()
	}
	w.after(w.between(120*time.Millisecond, 900*time.Millisecond), nil, s.undo)
}

// undo sets the clock right again once everybody has seen that it was wrong.
func (s *server) undo() {
	w := s.world
	if len(s.steps) == 0 {
		return
	}
	st := s.steps[0]
	for _, d := range w.daemons {
		if !d.dead && !st.seen[d] {
			w.after(10*time.Millisecond, nil, s.undo)
			return
		}
	}
	w.trace.note("", "the clock of master %s is set right again", s.name)
	s.offset -= st.by
	s.steps = nil
}

// looked notes that a flush has read the clock, seen that its daemon knows.
func (s *server) noteClockRead(_ *simLink, f *flight) {
	if f.done == len(f.commands) && f.commands[f.done-1].Args[0] == "TIME" {
		f.clockReadAt = s.world.now
	}
}

func (s *server) noteClockSeen(l *simLink, f *flight) {
	if f.clockReadAt > 0 && l.daemon != nil {
		s.clockSeenAt[l.daemon] = f.clockReadAt
	}
	for _, st := range s.steps {
		if f.clockReadAt >= st.at && l.daemon != nil {
			st.seen[l.daemon] = true
		}
	}
}

// heal ends what is wrong with a master.
func (s *server) heal() {
	s.resume()
	if s.promoted {
		s.crash(0)
	}
	if s.rippling || len(s.steps) > 0 && s.steps[0].by == 0 {
		s.steps = nil
	}
	s.undo()
	if len(s.steps) == 0 {
		s.offset = s.home
	}
}
