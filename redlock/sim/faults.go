package sim

import (
	"time"

	"redlockd/pool"
)

// cut ends one daemon's connection to one master. Some are seen by the daemon
// first, and what it has sent is executed later.
func cut(w *World) {
	d, s := w.daemons[w.random.IntN(len(w.daemons))], w.anyServer()
	if l := s.newestLink(d); l != nil {
		if w.chance(2) {
			l.sever()
			return
		}
		w.after(0, d, func() { l.end(errReset) })
	}
}

// newestLink is the last connection of a daemon, nil if it has none.
func (s *server) newestLink(d *daemon) (last *simLink) {
	for _, l := range s.links {
		if l.daemon == d && l.broken == nil && (last == nil || l.id > last.id) {
			last = l
		}
	}
	return last
}

// partition keeps one daemon and one master apart for a while.
func partition(w *World) {
	d := w.daemons[w.random.IntN(len(w.daemons))]
	d.blocked[w.anyServer()] = w.now + w.between(5*time.Millisecond, 600*time.Millisecond)
}

// stop is SIGSTOP, and SIGCONT after a while.
func stop(w *World) {
	s := w.anyServer()
	if !s.up || s.stopped {
		return
	}
	s.stopped = true
	process := s.process
	w.trace.note("", "master %s stops", s.name)
	w.after(w.between(5*time.Millisecond, 505*time.Millisecond), nil, func() {
		if s.process == process {
			s.resume()
		}
	})
}

// deny has masters refuse ZADD for a while, as a change of their users' rights does:
// one of them, or all.
func deny(w *World) {
	some := w.oneOrAll()
	for _, s := range some {
		w.trace.note("", "master %s denies ZADD", s.name)
		s.Denied = "ZADD"
	}
	w.after(w.between(time.Millisecond, 300*time.Millisecond), nil, func() {
		for _, s := range some {
			s.Denied = ""
		}
		w.trace.note("", "ZADD is allowed again")
	})
}

// sleep stops a daemon; its clock goes on.
func sleep(w *World) {
	d := w.daemons[w.random.IntN(len(w.daemons))]
	d.pause(w.between(5*time.Millisecond, 700*time.Millisecond))
}

func (d *daemon) pause(lasts time.Duration) {
	d.paused = max(d.paused, d.world.now+lasts)
	d.resumed = max(d.resumed, d.paused)
	d.world.trace.note("", "daemon %d is stopped until %.3fms", d.index, ms(d.paused))
}

// jump moves a daemon's clock ahead, as if its machine had been suspended.
func jump(w *World) {
	d := w.daemons[w.random.IntN(len(w.daemons))]
	by := w.between(20*time.Millisecond, 3*time.Second)
	d.clock.jumped += by
	w.forgets = true // its pending releases may seem too old to it
	w.trace.note("", "the clock of daemon %d jumps by %v", d.index, by)
}

// suspend stops a daemon's machine. Its clock goes on, and its timers do not.
func suspend(w *World) {
	d := w.daemons[w.random.IntN(len(w.daemons))]
	if d.paused > w.now {
		return
	}
	by := w.between(5*time.Millisecond, 700*time.Millisecond)
	d.clock.suspended += by
	d.paused = w.now + by
	d.resumed = max(d.resumed, d.paused+holdNotice) // until then holders need not know what they have lost
	w.trace.note("", "the machine of daemon %d is suspended until %.3fms", d.index, ms(d.paused))
}

// holdNotice is how long a daemon may take to notice that it was suspended.
const holdNotice = 150 * time.Millisecond

// die kills a daemon and starts another in its place.
func die(w *World) {
	kill(w, w.daemons[w.random.IntN(len(w.daemons))])
}

func kill(w *World, d *daemon) {
	if d.dead {
		return
	}
	w.forgets = true
	w.trace.note("", "daemon %d is killed", d.index)
	d.kill()
	for _, c := range w.clients {
		c.lost(d)
	}
	w.after(w.between(time.Millisecond, 200*time.Millisecond), nil, func() { d.replace() })
}

func (w *World) killDaemons() {
	for _, d := range w.daemons {
		kill(w, d)
	}
}

// oneOrAll are the masters that a fault is about.
func (w *World) oneOrAll() []*server {
	if w.chance(2) {
		return []*server{w.anyServer()}
	}
	return w.servers
}

// wipe deletes a lock on all masters, as an operator does by hand with a lock that seems
// to be stuck.
func wipe(w *World) {
	key := w.anyKey()
	w.trace.note(key, "an operator deletes %q", key)
	for _, s := range w.servers {
		if s.up {
			f := &flight{link: s.accept(nil), commands: []pool.Command{{Args: []string{"DEL", key}}}, sent: w.now}
			f.listener = func([]pool.Reply) {}
			w.after(w.Scenario.latency(w), nil, f.arrive)
		}
	}
}
