package sim

import (
	"context"
	"io"
	"time"

	"redlockd/pool/setup"
)

// replaceScenarios give the group another list of masters while it works. One daemon keeps
// running with the former list.
func replaceScenarios() []*Scenario {
	return []*Scenario{
		base("replaced", func(s *Scenario) {
			s.Replaces, s.MaxTTL, s.Length, s.Keys = true, 400*time.Millisecond, 14*time.Second, 2
			s.Faults = []fault{{400 * time.Millisecond, replaceMaster}, {time.Second, forgetKept}, {3 * time.Second, dieReplaced}}
		}),
	}
}

// replaceMaster runs redlockd reconfigure with the last master replaced, until it has
// succeeded, and starts all daemons but the first again with the new list. Nothing else
// goes wrong before.
func replaceMaster(w *World) {
	last := w.Scenario.Masters - 1
	if w.list[last] != w.servers[last] {
		return
	}
	former := w.list
	w.list = append(append([]*server(nil), w.servers[:last]...), w.servers[last+1])
	operator := newDaemon(w, len(w.daemons))
	w.spawn(operator, func() {
		if err := setup.Reconfigure(context.Background(), operator.options(), false, io.Discard); err != nil {
			w.trace.note("", "the masters are not changed: %v", err)
			w.list = former
			return
		}
		w.trace.note("", "master %s is replaced by master %s", w.servers[last].name, w.servers[last+1].name)
		w.quarantinedUntil = w.now + w.Scenario.age()
		for _, one := range w.daemons[1:] {
			w.after(0, nil, func() { kill(w, one) })
		}
	})
}

// replaced reports whether the change is over.
func (w *World) replaced() bool {
	last := w.Scenario.Masters - 1
	return w.list[last] != w.servers[last] && w.quarantinedUntil > 0
}

// forgetKept kills a master that is in both lists; it comes back empty.
func forgetKept(w *World) {
	if w.replaced() && w.overAge() {
		w.servers[w.random.IntN(w.Scenario.Masters-1)].crash(0)
	}
}

// dieReplaced kills a daemon that has not missed the change.
func dieReplaced(w *World) {
	if w.replaced() {
		kill(w, w.daemons[1+w.random.IntN(len(w.daemons)-1)])
	}
}
