package sim

import "time"

// clockStep is a clock that was set, and the daemons that have seen it since.
type clockStep struct {
	at   time.Duration
	by   int64
	seen map[*daemon]bool
}

// set sets the clock ahead, or back, by µs.
func (s *server) set(by int64) {
	s.world.trace.note("", "the clock of master %s is set by %.3f ms", s.name, float64(by)/1000)
	s.offset += by
	s.doubt(time.Duration(max(0, -by)) * time.Microsecond)
}

// doubt is called when daemons may take the memory for a new one, because it is lost or the clock is
// set. Its votes need not count before it is old enough, nor while places of waiters that have left
// last longer, because the clock was set back: each time adds to it.
func (s *server) doubt(longer time.Duration) {
	s.doubted = max(s.doubted, s.world.now+s.world.Scenario.age()+time.Second) + longer
}

// undo sets the clock right again once every daemon has seen that it was wrong.
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
	s.set(-st.by)
	s.steps = nil
}

// noteClockRead notes that a flush has read the clock, noteClockSeen that its daemon has
// received it.
func (s *server) noteClockRead(f *flight) {
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
	if len(s.steps) == 0 && s.offset != s.home {
		s.set(s.home - s.offset)
	}
}
