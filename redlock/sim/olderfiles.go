package sim

import (
	"slices"
	"strings"
	"time"
)

// olderFiles are the scenarios of changes of the masters beside masters that come back with what they
// had on disk before a change.
func olderFiles(change func(name string, lists ...string) *Scenario) []*Scenario {
	files, volumes, five := change("membership-files", "abc", "abd", "aed"), change("membership-volumes", "abc", "abd", "aed"), change("membership-files-five", "abcde", "abcfe", "abcfg")
	for _, s := range []*Scenario{files, volumes, five} {
		s.Length, s.LeftOut = 32*time.Second, true
		s.Faults = []fault{{500 * time.Millisecond, changeMasters}, {400 * time.Millisecond, rememberLong}, {time.Second, comeBackApart}}
	}
	for _, s := range []*Scenario{volumes, five} {
		s.Faults = append(s.Faults, fault{4 * time.Second, interruptChange}, fault{2 * time.Second, comeBack}, fault{5 * time.Second, divide},
			fault{5 * time.Second, startAgain}, fault{5 * time.Second, moveVolume}, fault{15 * time.Second, allComeBack})
	}
	// A durable master that comes from a backup lies: then another master must be reached that knows better.
	durable, wide := change("membership-backups", "abc", "abd", "aed"), change("membership-backups-five", "abcde", "abcfe", "abcfg")
	for _, s := range []*Scenario{durable, wide} {
		s.Durable, s.Length, s.LeftOut = true, 32*time.Second, true
		s.Faults = []fault{{500 * time.Millisecond, changeMasters}, {400 * time.Millisecond, rememberLong}, {time.Second, comeBack}, {3 * time.Second, startAgain}}
	}
	return []*Scenario{files, volumes, five, durable, wide}
}

// rememberLong takes few snapshots, so that most are older than a change.
func rememberLong(w *World) {
	if s := w.anyServer(); s.snapshot == nil || w.chance(10) {
		s.snapshot = s.Memory.Clone()
	}
}

// comeBackApart has a master that stays in the list come back with an older file. The first daemon starts
// again with its former list. It reaches that master and what the changes left out, the others what remains.
func comeBackApart(w *World) {
	former := w.daemons[0]
	both := slices.DeleteFunc(slices.Clone(w.list), func(s *server) bool {
		return w.changed == 0 || s.snapshot == nil || !s.up || !slices.Contains(former.list, s) || epochIn(s.snapshot) == s.epoch()
	})
	if len(both) == 0 || !w.overAge() {
		return
	}
	one, lasts := both[w.random.IntN(len(both))], w.between(w.Scenario.age()*3/2, 3*w.Scenario.age())
	for _, s := range w.servers {
		if s != one && s.epoch() != epochIn(one.snapshot) {
			former.blocked[s] = w.now + lasts
		}
	}
	for _, d := range w.daemons[1:] {
		d.blocked[one] = w.now + lasts
	}
	w.quarantinedUntil = w.now + lasts
	w.trace.note("", "daemon 0 reaches %s, which comes back, and the others do not, for %v", one.name, lasts)
	one.crash(1)
	kill(w, former)
}

// comeBack has a master come back with an older file.
func comeBack(w *World) {
	if s := w.anyServer(); s.snapshot != nil && w.overAge() {
		s.crash(1)
	}
}

// allComeBack has all masters of a former list come back with older files.
func allComeBack(w *World) {
	if !w.overAge() {
		return
	}
	for _, s := range w.masters(w.Scenario.Lists[w.random.IntN(w.changed+1)]) {
		if s.snapshot != nil {
			s.crash(1)
		}
	}
}

// divide keeps the daemons of former lists and the others from different masters, for about as long as
// a master that came back is quarantined.
func divide(w *World) {
	lasts := w.between(w.Scenario.age()/2, 3*w.Scenario.age())
	for _, s := range w.servers {
		side := w.random.IntN(3)
		for _, d := range w.daemons {
			if former := !slices.Equal(d.list, w.list); side == 0 && former || side == 1 && !former {
				d.blocked[s] = w.now + lasts
			}
		}
	}
	w.trace.note("", "the daemons of former lists and the others reach different masters for %v", lasts)
}

// startAgain starts a daemon again with a former list.
func startAgain(w *World) {
	d := w.daemons[1+w.random.IntN(len(w.daemons)-1)]
	if w.changed > 0 && !d.dead {
		d.next = w.masters(w.Scenario.Lists[w.random.IntN(w.changed)])
		kill(w, d)
	}
}

// moveVolume starts a master from an older volume under an address that only a daemon with a former list
// has, which starts with it.
func moveVolume(w *World) {
	s := w.anyServer()
	if s.snapshot == nil || !w.overAge() {
		return
	}
	s.crash(1)
	for _, d := range w.daemons[1:] {
		d.blocked[s] = w.now + w.between(w.Scenario.age(), 3*w.Scenario.age())
	}
	kill(w, w.daemons[0])
}

// oneComesBack has a master of a group come back with an older file, once its group has begun with the
// last one that did: without a quorum nothing goes on. Nor does it if too few others carry the epoch of a
// change that this one may have missed: then an operator is needed, as the runbook says.
func oneComesBack(w *World) {
	at := w.random.IntN(len(w.servers))
	first := at - at%w.Scenario.Masters
	group, s := w.servers[first:first+w.Scenario.Masters], w.servers[at]
	if s.snapshot != nil && !slices.ContainsFunc(group, (*server).forgot) && !s.neededIn(group) && w.overAge() {
		s.crash(1)
	}
}

// forgot reports whether no daemon has begun with a master since it came back.
func (s *server) forgot() bool {
	seal := s.Memory["redlockd:seal"]
	return !s.up || seal == nil || len(seal.Scores) != 1 || !strings.HasPrefix(seal.Scores[0].Member, s.runID)
}

// divideGroup keeps a daemon from one master of a group for long, and the others from another one.
func divideGroup(w *World) {
	first := w.random.IntN(2) * w.Scenario.Masters
	one, lasts := w.random.IntN(len(w.daemons)), w.between(w.Scenario.age()/2, 2*w.Scenario.age())
	some := w.random.Perm(w.Scenario.Masters)
	for i, d := range w.daemons {
		at := some[0]
		if i == one {
			at = some[1]
		}
		d.blocked[w.servers[first+at]] = w.now + lasts
	}
	w.trace.note("", "daemon %d and the others reach different masters of a group for %v", one, lasts)
}
