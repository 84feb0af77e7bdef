package chaos

// searchfaults_test.go: faults of searches alone: they combine what has to come together
// for a mutant to do harm, and are too rare or too coarse for long runs.

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"redlockd/pool/faulty"
)

// flushes strike more masters at once than may forget: locks survive that, since
// no master that forgot votes.
func flushes() []fault {
	return []fault{
		{"FLUSHALL of any", 3, onMaster, span{}, flushAll, nil},
		{"a master restarted empty", 1, onMaster, span{}, startEmpty, nil},
	}
}

// forgottenSlowly: one master after the other.
func forgottenSlowly() []fault { return []fault{{"FLUSHALL", 1, onMemory, span{}, flushAll, nil}} }

// idleFaults take the memory of a master and of a daemon.
func idleFaults() []fault {
	return append(daemonFaults(), fault{"FLUSHALL", 20, onMemory, span{}, flushAll, nil})
}

// majorityFlushes come when the last one is forgotten, so that locks are held
// meanwhile.
func majorityFlushes() []fault {
	return []fault{{"FLUSHALL of a majority", 1, onDaemon, span{age + time.Second, age + 3*time.Second}, flushMajority, func(*victim) {}}}
}

func flushMajority(v *victim) {
	for i := range v.stand.minority() + 1 {
		_, _ = v.stand.masters[(v.master+i)%len(v.stand.masters)].Do("FLUSHALL")
	}
}

// flushesWithin is that of all masters within the flushes of one daemon.
func flushesWithin() []fault {
	return []fault{{"FLUSHALL within a flush", 1, onDaemon, span{5 * time.Millisecond, 30 * time.Millisecond}, forgetWithin, resumeAll}}
}

func forgetWithin(v *victim) {
	for _, link := range v.struck().links {
		link.StallAfter(v.random.Int64N(1500), faulty.ToMaster)
	}
	time.Sleep(5 * time.Millisecond)
	for _, m := range v.stand.masters {
		_, _ = m.Do("FLUSHALL")
	}
}

// creepingFaults are clocks that go ahead by less than is taken for a step, several
// masters' at once, but not by the same.
func creepingFaults() []fault {
	return []fault{{"a clock that creeps ahead", 1, onMaster, span{0, maxTTL}, creepAhead, creepBack}}
}

func creepAhead(v *victim) {
	v.step = 9*time.Millisecond + time.Duration(v.random.Int64N(int64(5*time.Millisecond)))
	v.server().Step(v.step)
}

// clocksAhead go ahead while a daemon starts, and back: what it proposes from then on
// is ahead of what the others do, and what they do lies below what masters have seen.
func clocksAhead() []fault {
	return []fault{{"clocks ahead of a new daemon", 1, onDaemon, span{50 * time.Millisecond, 400 * time.Millisecond}, goAhead, comeBack}}
}

// ahead is less than a step that ends a memory's life, and not the same for any two.
func ahead(i int) time.Duration { return 14*time.Millisecond - time.Duration(i)*3*time.Millisecond }

func goAhead(v *victim) {
	v.struck().Kill()
	for i := range v.stand.minority() + 1 {
		v.stand.masters[i].Step(ahead(i))
	}
	v.struck().Restart()
	v.struck().awaitVotes()
}

func comeBack(v *victim) {
	for i := range v.stand.minority() + 1 {
		v.stand.masters[i].Step(-ahead(i))
	}
}

// unseenSteps happen while no daemon is connected to the master.
func unseenSteps() []fault {
	return []fault{{"a clock that steps unseen", 1, onIncarnation, span{time.Millisecond, maxTTL}, stepUnseen, stepBack}}
}

func stepUnseen(v *victim) {
	before := v.stand.identity(v.master)
	for _, d := range v.stand.daemons {
		refuse(&victim{stand: v.stand, daemon: slices.Index(v.stand.daemons, d), master: v.master})
	}
	v.step = 400 * time.Millisecond // a clock that is further off is not admitted at all
	v.server().Step(v.step)
	for _, d := range v.stand.daemons {
		d.links[v.master].Accept()
	}
	if !eventually(func() bool { return !slices.Equal(v.stand.identity(v.master), before) }) {
		v.stand.t.Errorf("the clock of master %s stepped unseen and no daemon noticed within %v", masterName(v.master), waitTimeout)
	}
}

// oversleeping: while a daemon's commands are on their way, it stands still, and the
// clocks of a quorum are set ahead, none like another, by less than it sleeps. The
// replies that it reads in the end could come from the old clocks, only later.
func oversleeping() []fault {
	return []fault{{"a daemon that oversleeps steps of clocks", 1, onDaemon, span{age + time.Second, age + 2*time.Second}, oversleep, func(*victim) {}}}
}

func oversleep(v *victim) {
	d := v.struck()
	for _, link := range d.links {
		link.Pause(faulty.ToMaster)
	}
	time.Sleep(10 * time.Millisecond)
	d.Stop()
	by := 220 * time.Millisecond
	for i, m := range v.stand.behindFirst()[:v.stand.minority()+1] {
		m.Step(by + time.Duration(i)*40*time.Millisecond)
	}
	for _, link := range d.links {
		link.Resume()
	}
	time.Sleep(by + 60*time.Millisecond)
	d.Cont()
}

// behindFirst are the masters by their clocks: steps of those that are behind do not
// add up to more than what daemons forgive.
func (s *stand) behindFirst() []*faulty.Server {
	clocks := map[*faulty.Server]int64{}
	for _, m := range s.masters {
		pair, _ := m.Do("TIME")
		if parts, ok := pair.([]any); ok && len(parts) == 2 {
			sec, _ := strconv.ParseInt(fmt.Sprint(parts[0]), 10, 64)
			us, _ := strconv.ParseInt(fmt.Sprint(parts[1]), 10, 64)
			clocks[m] = sec*1_000_000 + us
		}
	}
	return slices.SortedFunc(slices.Values(s.masters), func(a, b *faulty.Server) int { return cmp.Compare(clocks[a], clocks[b]) })
}

// slowness is of a whole daemon, just below what it gives its masters up for.
func slowness() []fault {
	return []fault{{"a slow daemon", 1, onDaemon, span{maxTTL, 3 * maxTTL}, slowAll, quickAll}}
}

func slowAll(v *victim) {
	for _, link := range v.struck().links {
		link.Delay(time.Duration(50+v.random.IntN(45))*time.Millisecond, faulty.ToClient)
	}
}

func quickAll(v *victim) {
	for _, link := range v.struck().links {
		link.Delay(0)
	}
}
