package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"redlockd/pool"
	"redlockd/pool/setup"
	"redlockd/redlock"
	"redlockd/redlock/sim/fake"
)

// movedRanges are what an operator moves to any of the groups: what of them the other one has, or all
// of them, which is refused if both have some.
var movedRanges = []string{"0-4095", "0-8191", "300-500,3500-4000", "8192-12287", "12288-16383", "8192-16383", "4000-8000", "4000-9000", "0-16383"}

// moveSlots has each operator run its command again if it did not succeed, and then another one.
func moveSlots(w *World) {
	for len(w.movers) < w.Scenario.Movers {
		w.movers = append(w.movers, &mover{finished: true})
	}
	m := w.movers[w.random.IntN(len(w.movers))]
	switch {
	case m.active():
		return
	case m.finished && m.ranges != nil && w.chance(2): // back
		m.to = 1 - m.to
	case m.finished || w.chance(8):
		m.to = w.random.IntN(2)
		m.ranges = mustParse(movedRanges[w.random.IntN(len(movedRanges))])
		if some := m.ranges.And(w.files[1-m.to]); len(some) > 0 && !w.chance(8) {
			m.ranges = some
		}
	}
	m.start(w)
}

func (m *mover) active() bool { return m.running && !m.process.dead }

// start runs redlockd slots move, on a machine with any of the files.
func (m *mover) start(w *World) {
	m.process = newDaemon(w, len(w.daemons))
	m.running, m.finished = true, false
	process, ranges, to := m.process, m.ranges, fmt.Sprint("g", m.to+1)
	w.moved = w.moved.Plus(ranges)
	if !w.calm {
		for _, s := range w.servers { // it does not reach each master
			if w.chance(6) {
				process.blocked[s] = w.now + w.between(0, 3*time.Second)
			}
		}
	}
	w.trace.note("", "an operator moves %s to %s", ranges, to)
	w.spawn(process, func() {
		all := []pool.Options{process.options(), process.secondOptions()}
		err := setup.MoveSlots(context.Background(), all, ranges, to, io.Discard)
		if process.dead || m.process != process {
			return
		}
		m.running = false
		if err != nil {
			w.trace.note("", "%s are not moved to %s: %v", ranges, to, err)
			m.heeds(w, err.Error())
			return
		}
		w.trace.note("", "%s are in %s", ranges, to)
		m.finished = true
		w.moves++
		w.files[m.to], w.files[1-m.to] = w.files[m.to].Plus(ranges), w.files[1-m.to].Minus(ranges)
	})
}

// heeds does what the error of the command proposes.
func (m *mover) heeds(w *World, text string) {
	m.finished = strings.Contains(text, "are not in one group")
	if _, rest, is := strings.Cut(text, "counter '"); is && strings.Contains(rest, "DIDRESEED") {
		name, _, _ := strings.Cut(rest, "'")
		w.reseed(name)
	}
	if _, rest, is := strings.Cut(text, "First finish it: redlockd slots move "); is {
		ranges, to, _ := strings.Cut(rest, " --to g")
		m.ranges, m.to = mustParse(ranges), int(to[0]-'1')
	}
}

// reseed sets a counter that the masters have forgotten, as the error of the command proposes. Above the
// highest id that is known, there may be some that were given and not received.
func (w *World) reseed(name string) {
	d := w.anyDaemon()
	if d == nil {
		return
	}
	w.after(0, d, func() {
		value := w.checker().counter(name).answered + 100
		d.engine.Reseed(0, redlock.Key(name), value, func(err error) {
			w.trace.note(name, "an operator sets %q to %d by daemon %d: %v", name, value, d.index, err)
		})
	})
}

// interruptMove kills an operator's process.
func interruptMove(w *World) {
	for _, m := range w.movers {
		if m.active() && w.chance(2) {
			w.trace.note("", "the operator's process is killed")
			m.process.kill()
		}
	}
}

// isolate keeps a daemon from all masters of a group for a while: it misses what is changed there.
func isolate(w *World) {
	d := w.daemons[w.random.IntN(len(w.daemons))]
	first, lasts := w.random.IntN(2)*w.Scenario.Masters, w.between(100*time.Millisecond, 6*time.Second)
	for _, s := range w.servers[first : first+w.Scenario.Masters] {
		d.blocked[s] = w.now + lasts
	}
	w.trace.note("", "daemon %d is cut off from the group of %s for %v", d.index, w.servers[first].name, lasts)
}

// setGroupClocks sets the clocks of a group's masters, one after the other. Set back by more than a
// freeze takes, they are behind the fences that the other group gave before a cut.
func setGroupClocks(w *World) {
	if !w.overAge() {
		return
	}
	first, by := w.random.IntN(len(w.servers)/w.Scenario.Masters)*w.Scenario.Masters, -w.between(500*time.Millisecond, 10*time.Second)
	if w.chance(3) {
		by = -by
	}
	w.forgets = true // copies last so much longer
	for i, at := range w.random.Perm(w.Scenario.Masters) {
		s, set := w.servers[first+at], int64((by+time.Duration(i)*30*time.Millisecond)/time.Microsecond)
		w.after(time.Duration(i)*w.between(200*time.Millisecond, 400*time.Millisecond), nil, func() {
			s.set(set)
			s.home += set
		})
	}
}

// settleMoves finishes moves that are unfinished, and requires that every daemon serves every key then.
func settleMoves(w *World) {
	const limit = 2 * time.Minute // clocks that were set back make a freeze longer
	for end := w.now + limit; w.violation == nil; {
		text, moving := w.unserved()
		if text == "" {
			return
		}
		if w.now > end {
			w.violate("liveness", "", fmt.Sprintf("%v after all faults have ended: %s", limit, text))
			return
		}
		for _, m := range w.movers {
			if m.active() {
				break // one after the other
			}
			if m.finished && moving != nil && moving.To != "" && !moving.Moved { // a move that was given up for another one
				m.ranges, m.to, m.finished = mustParse(moving.Slots), int(moving.To[1]-'1'), false
			}
			if !m.finished {
				m.start(w)
				break
			}
		}
		w.run(w.now + 200*time.Millisecond)
	}
}

// unserved names a key that a daemon does not serve, and the move that keeps it from that; "" = all
// serve all.
func (w *World) unserved() (text string, moving *redlock.Moving) {
	for _, d := range w.daemons {
		for i := range w.Scenario.Keys {
			key := redlock.Key(fmt.Sprint("k", i))
			var answer *error
			w.after(0, d, func() {
				if !d.serves() {
					return
				}
				token := d.token()
				w.checker().token(string(key), string(token)).foreign = true // of no client
				d.engine.Lock(nil, redlock.LockRequest{Key: key, TTL: w.Scenario.MinTTL, Token: token}, func(g redlock.Grant, err error) {
					if answer = &err; err == nil {
						d.engine.GiveBack(g)
					}
				})
			})
			w.run(w.now + 20*time.Millisecond)
			switch {
			case answer == nil:
				return fmt.Sprintf("daemon %d does not answer", d.index), nil
			case *answer != nil:
				moving, _ = errors.AsType[*redlock.Moving](*answer)
				return fmt.Sprintf("daemon %d does not serve %q: %v", d.index, key, *answer), moving
			}
		}
	}
	return "", nil
}

// forgetOne has a master forget, all or what came after its last snapshot, unless another one of its
// group is empty: a change that has stopped half-way keeps empty masters from being used, and without
// a quorum nothing goes on. So it is if another one has missed a switch: then too few have the counters.
func forgetOne(w *World) {
	at := w.random.IntN(len(w.servers))
	first := at - at%w.Scenario.Masters
	group, s := w.servers[first:first+w.Scenario.Masters], w.servers[at]
	if slices.ContainsFunc(group, func(s *server) bool { return !s.up || s.Memory["redlockd:seal"] == nil }) || !w.overAge() {
		return
	}
	if s.neededIn(group) {
		return
	}
	if w.chance(2) {
		s.flushall()
	} else {
		s.crash(w.random.IntN(3))
	}
}

// neededIn reports whether no quorum of its group would carry the epoch that the master does without it.
func (s *server) neededIn(group []*server) bool {
	carry := 0
	for _, one := range group {
		if one.epoch() == s.epoch() {
			carry++
		}
	}
	quorum := pool.Quorum(len(group))
	return carry == quorum && quorum < len(group)
}

// epoch is that of the configuration which a master carries; "" = none.
func (s *server) epoch() string { return epochIn(s.Memory) }

func epochIn(m fake.Memory) string {
	v := m["redlockd:configuration"]
	if v == nil {
		return ""
	}
	_, rest, _ := strings.Cut(v.Fields[0].Value, "epoch=")
	number, _, _ := strings.Cut(rest, " ")
	return number
}
