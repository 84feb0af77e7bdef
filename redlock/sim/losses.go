package sim

import "time"

// flushall empties a master.
func (s *server) flushall() {
	if !s.up || s.stopped {
		return
	}
	s.world.trace.note("", "FLUSHALL on master %s", s.name)
	clear(s.Memory)
	s.doubt(0)
}

// flushInside is a FLUSHALL between two commands of a flush.
func flushInside(_ *World, s *server) {
	if s.world.overAge() {
		s.flushall()
	}
}

// flushSometimes empties a master, not too often.
func flushSometimes(w *World) {
	if w.overAge() {
		w.anyServer().flushall()
	}
}

// loseScripts is SCRIPT FLUSH on a master, or on all.
func loseScripts(w *World) {
	for _, s := range w.oneOrAll() {
		w.trace.note("", "SCRIPT FLUSH on master %s", s.name)
		clear(s.Loaded)
	}
}

// swapScripts is SCRIPT FLUSH between two commands of a flush or, after one, what another daemon
// loads.
func swapScripts(w *World, s *server) {
	w.trace.note("", "the scripts of master %s go, or come", s.name)
	if len(s.Loaded) > 0 {
		clear(s.Loaded)
		return
	}
	for sha := range s.Scripts.Texts {
		s.Loaded[sha] = true
	}
}

// evictUnseen takes keys of a master under a policy that is undone at once, with
// no daemon connected: the next admission must find it.
func evictUnseen(w *World) {
	s := w.anyServer()
	if !s.up || s.stopped || !w.overAge() {
		return
	}
	s.evict()
	for _, l := range s.sortedLinks() {
		l.sever()
	}
}

// restart kills a master; what comes back may have forgotten.
func restart(w *World) {
	if w.overAge() {
		w.anyServer().crash(w.random.IntN(3))
	}
}

// forget kills a master that comes back empty.
func forget(w *World) {
	if w.overAge() {
		w.anyServer().crash(0)
	}
}

// restartAll takes all masters at once.
func restartAll(w *World) {
	if w.overAge() {
		for _, s := range w.servers {
			s.crash(0)
		}
	}
}

// restartDurable loses nothing: every write was on disk.
func restartDurable(w *World) { w.anyServer().crash(2) }

// promote puts a replica in a master's place that lacks the last writes, when no
// daemon is left that has acknowledged them; after a while it is started again, empty.
func promote(w *World) {
	if w.overAge() {
		s := w.anyServer()
		s.crash(3)
		w.killDaemons()
		w.after(time.Second, nil, func() {
			if s.up && s.promoted {
				s.crash(0)
			}
		})
	}
}

// lie: a master that calls itself durable comes back with an older memory.
func lie(w *World) {
	if w.overAge() {
		w.anyServer().crash(1)
	}
}

// save has all masters take a snapshot at one moment.
func save(w *World) {
	for _, s := range w.servers {
		s.snapshot = s.Memory.Clone()
	}
}

// rollBack kills one master that is not durable, or all; they come back with what
// their last snapshots have.
func rollBack(w *World) {
	if !w.overAge() {
		return
	}
	for _, s := range w.oneOrAll() {
		s.crash(1)
	}
}

// awaken: a master that was not durable loses writes and is durable from then
// on, and no daemon is left that has seen its last register.
func awaken(w *World) {
	if !w.overAge() {
		return
	}
	s := w.anyServer()
	s.crash(1)
	s.durable = !s.durable
	w.killDaemons()
}

// backUps: some masters come back with the files of a backup, and no daemon is left
// that remembers what was acknowledged since. At least one master lost nothing, and
// the backup is older than what its records may lack.
func backUps(w *World) {
	if !w.overAge() {
		return
	}
	some := w.random.Perm(len(w.servers))[:1+w.random.IntN(len(w.servers)-1)]
	for _, i := range some {
		w.servers[i].snapshot = w.servers[i].Memory.Clone()
	}
	wait := w.between(2500*time.Millisecond, 4*time.Second)
	w.quarantinedUntil += wait
	w.after(wait, nil, func() {
		if w.calm {
			return
		}
		for _, i := range some {
			w.servers[i].crash(1)
		}
		w.killDaemons()
	})
}

// remember takes the snapshot that a restart may come back with.
func remember(w *World) {
	s := w.anyServer()
	s.snapshot = s.Memory.Clone()
}
