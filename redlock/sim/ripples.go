package sim

import (
	"time"

	"redlockd/pool"
)

// rested is how long daemons take to tolerate everything again that can be tolerated.
const rested = 9 * time.Second

// ripple moves the clocks of some masters by little steps, or slews them, forward
// and the next time back. Each step waits until every daemon has seen the one
// before: what no daemon can see is beyond what is promised. Mostly the sum is small
// enough to be tolerated. When it is not, daemons come and go between the steps.
func ripple(w *World) {
	for _, s := range w.servers {
		if s.rippling || !s.steady() {
			return
		}
	}
	if w.now < w.ripples {
		return
	}
	if !w.tolerating() && !w.chance(60) {
		return
	}
	w.ripples = w.now + w.between(0, rested/4)
	far, some := w.chance(2), 1+w.random.IntN(len(w.servers))
	comings := far && w.chance(2)
	if far {
		some = len(w.servers)
	}
	for i, at := range w.random.Perm(len(w.servers))[:some] {
		s, few := w.servers[at], i < pool.Quorum(len(w.servers))-1
		sum := w.between(16*time.Millisecond, 60*time.Millisecond)
		if far {
			sum = w.between(150*time.Millisecond, 350*time.Millisecond)
		}
		r := &rippled{server: s, left: sum, sign: 1, minStep: 16 * time.Millisecond, maxStep: 60 * time.Millisecond, comings: comings}
		switch {
		case !far && s.offset > s.home+10_000, s.offset > s.home+100_000: // and back
			r.sign, r.left = -1, time.Duration(s.offset-s.home)*time.Microsecond
		case few && w.chance(4): // too small to count as an anomaly, but many; of a quorum it would look like a daemon's own clock
			r.minStep, r.maxStep = 5*time.Millisecond, 14*time.Millisecond
		case few && w.chance(3):
			r.slews = true
		case far:
			r.minStep = 35 * time.Millisecond
		}
		s.rippling = true
		w.after(w.between(0, 50*time.Millisecond), nil, r.next)
	}
}

// creep slews one master's clock further than is tolerated, and the next time back.
func creep(w *World) {
	for _, s := range w.servers {
		if s.rippling {
			return
		}
	}
	s := w.anyServer()
	r := &rippled{server: s, left: w.between(200*time.Millisecond, 350*time.Millisecond), sign: 1, slews: true}
	if s.offset > s.home+10_000 {
		r.sign, r.left = -1, time.Duration(s.offset-s.home)*time.Microsecond
	}
	w.trace.note("", "the clock of master %s is slewed by %.3f ms", s.name, float64(r.sign)*ms(r.left))
	s.rippling = true
	r.slew()
}

// tolerating reports whether all daemons have observed all clocks for long.
func (w *World) tolerating() bool {
	for _, s := range w.servers {
		for _, d := range w.daemons {
			if l := s.newestLink(d); !d.dead && (l == nil || w.now-l.since < rested) {
				return false
			}
		}
	}
	return true
}

// rippled is the plan of steps for one master's clock.
type rippled struct {
	server           *server
	left             time.Duration
	sign             int64
	minStep, maxStep time.Duration // of a step
	slews            bool
	comings          bool // daemons come and go between two steps
}

func (r *rippled) next() {
	s := r.server
	w := s.world
	switch {
	case w.calm || r.left <= 0:
		s.rippling = false
		return
	case !w.steady():
		w.after(w.between(2*time.Millisecond, 8*time.Millisecond), nil, r.next)
		return
	case r.slews:
		r.slew()
		return
	}
	by := min(r.left, w.between(r.minStep, r.maxStep))
	r.set(by)
	s.steps = append(s.steps, &clockStep{at: w.now, seen: map[*daemon]bool{}})
	if r.comings {
		w.after(20*time.Millisecond, nil, r.relieve)
		return
	}
	w.after(w.between(time.Millisecond, 30*time.Millisecond), nil, r.next)
}

func (r *rippled) set(by time.Duration) {
	s := r.server
	s.set(r.sign * int64(by/time.Microsecond))
	r.left -= by
	if s.up && !s.stopped {
		s.readClock(int64(s.world.now / time.Microsecond))
		s.expireActively()
	}
}

// slew moves the clock by 8 %.
func (r *rippled) slew() {
	w := r.server.world
	if w.calm || r.left <= 0 {
		r.server.steps = append(r.server.steps, &clockStep{at: w.now, seen: map[*daemon]bool{}})
		w.after(0, nil, r.next)
		return
	}
	r.set(min(r.left, 400*time.Microsecond))
	w.after(5*time.Millisecond, nil, r.slew)
}

// relieve has every daemon connect anew, or another one come in its place, one
// after the other, once all have seen the last step.
func (r *rippled) relieve() {
	s := r.server
	w := s.world
	if !s.steady() && !w.calm {
		w.after(5*time.Millisecond, nil, r.relieve)
		return
	}
	for i, d := range w.daemons {
		w.after(time.Duration(i)*30*time.Millisecond, nil, func() {
			if l := s.newestLink(d); l != nil && !w.chance(4) {
				l.sever()
			} else if s.watched(d) && !d.dead {
				kill(w, d)
			}
		})
	}
	w.after(time.Duration(len(w.daemons))*30*time.Millisecond+w.between(0, 100*time.Millisecond), nil, r.next)
}

// steady reports whether the next step may come. The clocks of a quorum that are set
// alike, one before the other was checked, look like a daemon's own clock.
func (w *World) steady() bool {
	for _, s := range w.servers {
		if !s.steady() {
			return false
		}
	}
	return w.now-w.stepped > 10*time.Millisecond
}

// steady reports whether every daemon has seen where the clock is, and some observe it.
func (s *server) steady() bool {
	for _, st := range s.steps {
		for _, d := range s.world.daemons {
			if !d.dead && !st.seen[d] {
				return false
			}
		}
	}
	if len(s.steps) > 0 {
		s.steps, s.world.stepped = nil, s.world.now
	}
	return s.up && !s.stopped && s.watched(nil)
}

// watched reports whether a daemon other than this one observes the clock.
func (s *server) watched(but *daemon) bool {
	for _, d := range s.world.daemons {
		if d != but && !d.dead && s.newestLink(d) != nil && s.world.now-s.clockSeenAt[d] < 200*time.Millisecond {
			return true
		}
	}
	return false
}
