package sim

import (
	"fmt"
	"time"

	"redlockd/redlock"
)

// carryingScenarios change the list of masters while clients draw ids and work. Most counters are idle
// most of the time. In the end every counter, and work that is new, must be served.
func carryingScenarios() []*Scenario {
	carrying := func(name string, lists ...string) *Scenario {
		return base(name, func(s *Scenario) {
			s.Lists, s.Masters, s.Daemons, s.Durable, s.Settle = lists, len(lists[0]), 4, true, settleChanges
			s.MinTTL, s.MaxTTL, s.MaxKeep, s.Length, s.Counters = 60*time.Millisecond, 300*time.Millisecond, 30*time.Second, 16*time.Second, 40
			s.Idle = true
			s.Clients = []ClientGroup{{2, newLocking}, {3, newCounting}, {3, newWorking}}
			s.Faults = []fault{{300 * time.Millisecond, changeMasters}, {3 * time.Second, interruptChange}, {500 * time.Millisecond, partition},
				{3 * time.Second, die}, {2 * time.Second, restartDurable}, {2 * time.Second, stop}}
		})
	}
	rivals := carrying("carrying-rivals", "abcd", "abc", "bcd") // two changes at a time
	rivals.Faults = append(rivals.Faults, fault{600 * time.Millisecond, changeOtherwise})
	forgets := carrying("carrying-memory", "abc", "dbc", "dec", "def") // memory that is lost is another matter: it need not serve
	forgets.Durable, forgets.Settle = false, nil
	forgets.Faults = append(forgets.Faults, fault{2 * time.Second, forget})
	return []*Scenario{
		carrying("carrying-replace", "abc", "dbc", "dec", "def"),
		carrying("carrying-more", "abc", "abcd", "abcde", "fbcde"),
		carrying("carrying-fewer", "abcde", "bcde", "cde"),
		carrying("carrying-again", "abc", "dbc", "abc", "abd"),
		rivals, forgets,
	}
}

// settleChanges has operators finish the changes, and requires ids and new work of each daemon that
// follows.
func settleChanges(w *World) {
	const limit = time.Minute
	for end := w.now + limit; w.violation == nil; {
		if !w.changing() && w.changed < len(w.Scenario.Lists)-1 {
			w.changeTo(w.changed + 1)
		}
		if !w.changing() && w.now > w.quarantinedUntil {
			text := w.forgotten()
			if text == "" {
				return
			}
			if w.now > end {
				w.violate("liveness", "", fmt.Sprintf("%v after all faults have ended: %s", limit, text))
				return
			}
		}
		w.run(w.now + 200*time.Millisecond)
	}
}

// changing reports whether an operator is at work.
func (w *World) changing() bool {
	for _, one := range w.operators {
		if !one.dead && one.busy {
			return true
		}
	}
	return false
}

// forgotten names a counter, or work, that a daemon does not serve; "" = all are served.
func (w *World) forgotten() string {
	d := w.daemons[len(w.daemons)-1]
	for i := range w.Scenario.Counters + 1 {
		name := fmt.Sprint("n", i) // the last one is new
		counter := w.checker().counter(name)
		request := idRequest{counter.answered, counter.deletions}
		var answer *error
		w.after(0, d, func() {
			if !d.serves() {
				return
			}
			d.engine.NextID(nil, redlock.IDRequest{Name: redlock.Key(name), Count: 1}, func(first int64, err error) {
				if answer = &err; err == nil {
					w.checker().ids(name, first, 1, request)
				}
			})
		})
		w.run(w.now + 30*time.Millisecond)
		switch {
		case answer == nil:
			return fmt.Sprintf("daemon %d does not answer", d.index)
		case *answer != nil:
			return fmt.Sprintf("daemon %d gives no ids: %v", d.index, *answer)
		}
	}
	var answer *error
	w.after(0, d, func() {
		if !d.serves() {
			return
		}
		r := redlock.WorkRequest{Key: redlock.Key(fmt.Sprint("fresh", w.now)), Timeout: w.Scenario.MinTTL, Max: 1, Keep: time.Second}
		d.engine.Work(nil, r, func(_ redlock.Work, err error) { answer = &err })
	})
	w.run(w.now + 30*time.Millisecond)
	switch {
	case answer == nil:
		return fmt.Sprintf("daemon %d does not answer", d.index)
	case *answer != nil:
		return fmt.Sprintf("daemon %d gives no work: %v", d.index, *answer)
	}
	return ""
}
