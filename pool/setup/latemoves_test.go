package setup

// latemoves_test.go: operators of moves that go on late, after others have moved the slots.

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/wire"
	"redlockd/redlock/slots"
)

// observed is a dialer of links that call before ahead of each exchange, which does not happen if
// that returns false.
func observed(before func(commands []wire.Command) bool) wire.Dialer {
	return hooked(wire.DialRueidis(stepTimeout), func(_ string, commands []wire.Command, exchange func() []wire.Reply) []wire.Reply {
		if !before(commands) {
			return nil
		}
		return exchange()
	})
}

// runs reports whether one of the commands has a word, such as the text of a script.
func runs(commands []wire.Command, word string) bool {
	return slices.ContainsFunc(commands, func(c wire.Command) bool { return slices.Contains(c.Args, word) })
}

// during is quick, and calls others once, in the freeze.
type during struct {
	pool.Tasks
	quick quick
	once  func()
}

func (d *during) Sleep(time time.Duration) {
	if others := d.once; others != nil && time != minEvidence {
		d.once = nil
		others()
	}
	d.quick.Sleep(time)
}

// While an operator waits for the end of the freeze, another one completes the move, and begins the
// way back. What the first group has of the slots is old then.
func TestMoveSlots_ALateOperatorDoesNotRepeatAMoveThatWasUndone(t *testing.T) {
	t.Parallel()
	w := newTwoGroups(t)
	for i := range w.options {
		w.options[i].MaxTTL = 30 * time.Second // a slow machine reaches the freeze before it is over
	}
	w.bootstrap()
	ranges := strconv.Itoa(slots.Of("{a}"))
	w.seed(0, "{a}:n", 100)
	all := slices.Clone(w.options)
	tasks := &during{quick: quick{w: w}, once: func() {
		w.moved(ranges, "g2")
		w.seed(1, "{a}:n", 200)
		w.cut(ranges, 1, 0)
	}}
	for i := range all {
		all[i].Tasks = tasks
	}
	err := MoveSlots(t.Context(), all, parsed(t, ranges), "g2", io.Discard)
	if tasks.once != nil {
		t.Fatal("the operator did not wait: the test proves nothing")
	}
	if want := "slots: another operator has moved " + ranges + " since; run the same command again"; err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
	if owned, _, _ := w.has(1); owned != "none" {
		t.Errorf("g2 has %s", owned)
	}
	w.moved(ranges, "g1")
	w.counter(0, "{a}:n", 200)
}

// thereAndBack is a move that others complete and undo; then they begin it once more.
func (t *twoGroups) thereAndBack(ranges string) {
	t.moved(ranges, "g2")
	t.seed(1, "{a}:n", 200)
	t.moved(ranges, "g1")
	t.seed(0, "{a}:n", 300)
	t.cutOnly(ranges)
}

// An operator has read what the slots take along, and stops for so long that the same cut is made once
// more. It looks as before, and is another one.
func TestMoveSlots_ACutOfTheSameSlotsIsAnotherOne(t *testing.T) {
	t.Parallel()
	w := newTwoGroups(t)
	ranges := strconv.Itoa(slots.Of("{a}"))
	w.seed(0, "{a}:n", 100)
	w.cutOnly(ranges)
	all, read, late := slices.Clone(w.options), false, false
	all[0].Dialer = observed(func(commands []wire.Command) bool {
		read = read || runs(commands, "SCAN")
		return true
	})
	all[1].Dialer = observed(func([]wire.Command) bool {
		if read && !late {
			late = true
			w.thereAndBack(ranges)
		}
		return true
	})
	err := MoveSlots(t.Context(), all, parsed(t, ranges), "g2", io.Discard)
	if owned, _, _ := w.has(1); err == nil || !late || owned != "none" {
		t.Errorf("%v; the others came in between: %v; g2 has %s", err, late, owned)
	}
	w.moved(ranges, "g2")
	w.counter(1, "{a}:n", 300)
}

// At whatever step an operator stops for long: when it goes on, nothing that is old wins.
func TestMoveSlots_AnOperatorIsLateAtAnyStep(t *testing.T) {
	t.Parallel()
	w := newTwoGroups(t)
	ranges := strconv.Itoa(slots.Of("{a}"))
	undo := func() { // the move is complete, and undone as far as the cut
		w.moved(ranges, "g2")
		w.seed(1, "{a}:n", 200)
		w.cut(ranges, 1, 0)
	}
	again := func() { w.thereAndBack(ranges) }
	late := func(n int, others func()) (exchanges int) {
		w.bootstrap()
		w.seed(0, "{a}:n", 100)
		w.cutOnly(ranges)
		_, _ = w.move(ranges, "g2", observed(func([]wire.Command) bool {
			if exchanges++; exchanges == n {
				others()
			}
			return true
		}))
		return exchanges
	}
	exchanges, step := late(0, nil), 43
	if testing.Short() {
		step = 149
	}
	t.Logf("%d exchanges", exchanges)
	for n := 1; n <= exchanges && !t.Failed(); n += step {
		late(n, undo)
		w.moved(ranges, "g1")
		w.counter(0, "{a}:n", 200)
		late(n+step/2, again)
		w.moved(ranges, "g2")
		if n+step/2 <= exchanges {
			w.counter(1, "{a}:n", 300)
		}
		if t.Failed() {
			t.Errorf("late at exchange %d or %d of %d", n, n+step/2, exchanges)
		}
	}
}

// unfinishedSwitch has one master of g2 carry the configuration with the slots that g1 gave up.
func (t *twoGroups) unfinishedSwitch(ranges string) {
	t.t.Helper()
	renames := 0
	all := slices.Clone(t.options)
	all[1].Dialer = observed(func(commands []wire.Command) bool {
		if runs(commands, renameScript) {
			renames++
		}
		return renames <= 1
	})
	if err := MoveSlots(t.t.Context(), all, parsed(t.t, ranges), "g2", io.Discard); err == nil || renames == 0 {
		t.t.Fatalf("%v after %d changes of a master", err, renames)
	}
	if owned, _, _ := t.has(1); owned != "none" {
		t.t.Fatalf("g2 has %s", owned)
	}
}

// A switch that only a minority carries may be lost. Until it is in force, the cut stays.
func TestMoveSlots_ACutIsKeptWhileTheSwitchIsUnfinished(t *testing.T) {
	t.Parallel()
	w := newGroups(t, 3)
	w.cutOnly("0-10")
	w.unfinishedSwitch("0-10")
	w.refused("20-30", "g3", "a move of 0-10 from group g1 is unfinished, and another one must not replace it; nothing was changed. A move cannot be taken back. First finish it: redlockd slots move 0-10 --to g2")
	// Nor does g1 lose it when it gets slots itself.
	w.bootstrap()
	w.moved("20-30", "g3")
	w.cut("20-30", 2, 0)
	w.cutOnly("0-10")
	w.unfinishedSwitch("0-10")
	w.moved("20-30", "g1")
	if owned, leaving, _ := w.has(0); owned != "11-16383" || leaving != "0-10" {
		t.Errorf("g1 has %s, leaving %q", owned, leaving)
	}
	w.servers[1][0].FlushAll() // the switch is lost
	w.moved("0-10", "g2")
	if owned, _, _ := w.has(1); owned != "0-10" {
		t.Errorf("g2 has %s", owned)
	}
}

// A group gets slots while those that it gave up come back: its former cut, in a configuration of a
// version as high as that of the cut which waits, is not taken for that.
func TestMoveSlots_AFormerCutKeepsItsVersion(t *testing.T) {
	t.Parallel()
	w := newGroups(t, 3)
	ranges := strconv.Itoa(slots.Of("{a}"))
	w.seed(0, "{a}:n", 100)
	w.moved("0-10", "g3")
	w.cut("0-10", 2, 0)
	w.cutOnly(ranges)
	w.unfinishedSwitch(ranges)
	renames := 0
	out, err := w.move("0-10", "g1", observed(func(commands []wire.Command) bool {
		if !runs(commands, renameScript) {
			return true
		}
		if renames++; renames == 1 {
			w.moved(ranges, "g2")
			w.seed(1, "{a}:n", 200)
			w.cut(ranges, 1, 0)
		}
		return true
	}))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, leaving, version := w.has(0)
	_, waiting, other := w.has(1)
	if leaving != ranges || waiting != ranges || version < other {
		t.Fatalf("g1 gave up %q at %d, and g2 %q at %d: this is to be another case", leaving, version, waiting, other)
	}
	var shown strings.Builder
	if err := ShowSlots(t.Context(), w.options, nil, &shown); err != nil || strings.Count(shown.String(), "frozen for") != 1 || !strings.Contains(shown.String(), "slots move "+ranges+" --to g1") {
		t.Errorf("%v\n%s", err, shown.String())
	}
	w.refused(ranges, "g2", "First finish it: redlockd slots move "+ranges+" --to g1")
	w.moved(ranges, "g1")
	w.counter(0, "{a}:n", 200)
	if owned, _, _ := w.has(0); owned != "all" {
		t.Errorf("g1 has %s", owned)
	}
}
