package sim

import (
	"context"
	"io"
	"slices"
	"time"

	"redlockd/pool/setup"
)

// membershipScenarios change the list of masters while the group works. Some daemons keep
// running with a former list.
func membershipScenarios() []*Scenario {
	change := func(name string, lists ...string) *Scenario {
		return base(name, func(s *Scenario) {
			s.Lists, s.Masters, s.Daemons, s.MinTTL, s.MaxTTL, s.Length, s.Keys = lists, len(lists[0]), 5, 100*time.Millisecond, 800*time.Millisecond, 24*time.Second, 2
			s.Faults = []fault{{500 * time.Millisecond, changeMasters}, {time.Second, forget}, {3 * time.Second, die}, {4 * time.Second, interruptChange}, {400 * time.Millisecond, partition}}
		})
	}
	blank := change("membership-blank", "abc", "abd") // masters come back empty, all at once, too
	blank.Faults = append(blank.Faults, fault{5 * time.Second, forgetAll})
	rivals := change("membership-rivals", "abcd", "abc", "bcd") // two changes at a time
	rivals.Faults = append(rivals.Faults, fault{700 * time.Millisecond, changeOtherwise})
	emptied := change("membership-emptied", "abc", "abd", "abc") // an operator meets a master that has just lost its memory
	emptied.LeftOut, emptied.Faults = true, []fault{{400 * time.Millisecond, changeEmptied}, {400 * time.Millisecond, partition}, {3 * time.Second, die}}
	return append(olderFiles(change), []*Scenario{
		change("membership-replace", "abc", "abd", "aed"),
		change("membership-resize", "abc", "abcd", "abcde", "abce", "ace"),
		change("membership-again", "abc", "abd", "abc"),
		change("membership-five", "abcde", "abcdf", "abgdf"),
		change("membership-halved", "abcde", "abc"), // refused, unless a rule is missing
		blank, emptied, rivals,
	}...)
}

// changeMasters runs redlockd reconfigure with the next list, until it has succeeded. Then
// all daemons but the first start again with the new list.
func changeMasters(w *World) {
	if w.changed < len(w.Scenario.Lists)-1 && w.overAge() {
		w.changeTo(w.changed + 1)
	}
}

// changeOtherwise is another operator with another list.
func changeOtherwise(w *World) {
	if w.changed == 0 && w.chance(2) {
		w.changeTo(2)
	}
}

// changeEmptied empties a master that stays, as an operator begins who does not reach those that were left out.
func changeEmptied(w *World) {
	if !w.overAge() || w.changed == len(w.Scenario.Lists)-1 {
		return
	}
	if w.changed > 0 {
		w.servers[w.random.IntN(2)].flushall()
	}
	w.changeTo(w.changed + 1)
}

func (w *World) changeTo(next int) {
	operator := newDaemon(w, len(w.daemons))
	operator.busy = true
	operator.list = w.masters(w.Scenario.Lists[next])
	w.operators = append(w.operators, operator)
	for _, s := range w.servers { // it does not reach each master
		if w.chance(4) && !w.calm && !(w.Scenario.Durable && slices.Contains(operator.list, s)) {
			operator.blocked[s] = w.now + w.between(0, 5*time.Second)
		}
		if w.Scenario.LeftOut && !slices.Contains(operator.list, s) {
			operator.blocked[s] = w.now + time.Hour
		}
	}
	if early := w.daemons[2+w.random.IntN(len(w.daemons)-2)]; w.chance(2) { // it is restarted too soon
		early.next = operator.list
		w.after(w.between(0, 5*time.Millisecond), nil, func() { kill(w, early) })
	}
	w.spawn(operator, func() {
		defer func() { operator.busy = false }()
		if err := setup.Reconfigure(context.Background(), operator.options(), setup.ChangeTerms{Absent: true}, io.Discard); err != nil {
			w.trace.note("", "the masters are not changed: %v", err)
			return
		}
		w.trace.note("", "the masters are %s", w.Scenario.Lists[next])
		w.list, w.changed = operator.list, max(w.changed, next)
		w.quarantinedUntil = w.now + w.Scenario.age()
		for _, one := range w.daemons[1+next%2:] { // the second one misses each other change
			w.after(0, nil, func() { kill(w, one) })
		}
	})
}

// interruptChange kills an operator's process.
func interruptChange(w *World) {
	for _, one := range w.operators {
		if !one.dead && w.chance(2) {
			one.kill()
		}
	}
}

// masters are the servers with these names.
func (w *World) masters(names string) (list []*server) {
	for _, name := range names {
		list = append(list, w.servers[name-'a'])
	}
	return list
}

// forgetAll kills all masters, or all but one.
func forgetAll(w *World) {
	if !w.overAge() {
		return
	}
	spared := w.random.IntN(2 * len(w.servers))
	for i, s := range w.servers {
		if i != spared {
			s.crash(0)
		}
	}
}
