package setup

// moves_test.go: slots move between two groups on real masters. What daemons make of it is tested in
// package redlock.

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/admission"
	"redlockd/pool/faulty"
	"redlockd/pool/wire"
	"redlockd/redlock/slots"
	"redlockd/redlock/stored"
)

// quick are tasks that do not wait: the configurations on the masters become older instead.
type quick struct {
	pool.Tasks
	w *twoGroups
}

func (q quick) Sleep(d time.Duration) { q.w.older(d) }

// twoGroups are g1 with all slots and g2 with none, or more of those, of three masters each.
type twoGroups struct {
	t       *testing.T
	servers [][]*faulty.Server
	options []pool.Options

	mu   sync.Mutex
	away []*faulty.Server // that do not answer
}

// older makes all configurations older, in both databases.
func (t *twoGroups) older(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	const script = `for db = 0, 1 do
  redis.call('SELECT', db)
  local at, texts = string.match(redis.call('HGET', KEYS[1], ARGV[1]) or '', '^(%d+)(\n.*)$')
  if at then redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', at - ARGV[2]) .. texts) end
end`
	for i, servers := range t.servers {
		for _, s := range servers {
			if !slices.Contains(t.away, s) {
				if _, err := s.Do("EVAL", script, 1, admission.ConfigurationKey, t.options[i].Group, d.Microseconds()); err != nil {
					t.t.Error(err)
				}
			}
		}
	}
}

func newTwoGroups(t *testing.T) *twoGroups { return newGroups(t, 2) }

func newGroups(t *testing.T, n int) *twoGroups {
	t.Helper()
	w := &twoGroups{t: t}
	for i := range n {
		w.servers = append(w.servers, faulty.StartGroup(t, 3))
		o := optionsOf(w.servers[i]...)
		o.Group, o.RestartGuardOff, o.Tasks = fmt.Sprint("g", i+1), true, quick{w: w}
		if i > 0 {
			o.Slots = "none"
		}
		w.options = append(w.options, o)
	}
	w.bootstrap()
	return w
}

// bootstrap also empties the masters.
func (t *twoGroups) bootstrap() {
	t.t.Helper()
	for i, o := range t.options {
		for _, s := range t.servers[i] {
			s.FlushAll()
		}
		if err := Bootstrap(t.t.Context(), o, BootstrapTerms{}, io.Discard); err != nil {
			t.t.Fatal(err)
		}
	}
}

func (t *twoGroups) move(ranges, to string, dial ...wire.Dialer) (string, error) {
	t.t.Helper()
	all, rs := slices.Clone(t.options), parsed(t.t, ranges)
	for i := range all {
		for _, d := range dial {
			all[i].Dialer = d
		}
	}
	var out strings.Builder
	err := MoveSlots(t.t.Context(), all, rs, to, &out)
	return out.String(), err
}

// brief dials with little patience for the masters that are away.
func (t *twoGroups) brief() wire.Dialer {
	soon, patient := wire.DialRueidis(200*time.Millisecond), wire.DialRueidis(stepTimeout)
	return func(ctx context.Context, m wire.Master, db int) (wire.Link, error) {
		if slices.ContainsFunc(t.away, func(s *faulty.Server) bool { return s.Addr() == m.Address }) {
			return soon(ctx, m, db)
		}
		return patient(ctx, m, db)
	}
}

func parsed(t *testing.T, ranges string) slots.Ranges {
	t.Helper()
	rs, err := slots.Parse(ranges)
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

// moved is move without an error.
func (t *twoGroups) moved(ranges, to string) string {
	t.t.Helper()
	out, err := t.move(ranges, to)
	if err != nil {
		t.t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// refused wants an error with this text, and nothing written.
func (t *twoGroups) refused(ranges, to, text string) {
	t.t.Helper()
	before := t.texts()
	if out, err := t.move(ranges, to); err == nil || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "nothing was changed") {
		t.t.Errorf("%s to %s: %v, want %q\n%s", ranges, to, err, text, out)
	}
	if now := t.texts(); !slices.Equal(now, before) {
		t.t.Errorf("%s to %s: the masters carry %q, before %q", ranges, to, now, before)
	}
}

// texts are the configurations on the masters of both groups.
func (t *twoGroups) texts() (all []string) {
	t.t.Helper()
	for i := range t.servers {
		for _, s := range t.servers[i] {
			all = append(all, t.carries(i, s).Now.String())
		}
	}
	return all
}

func (t *twoGroups) carries(group int, s *faulty.Server) admission.StoredConfiguration {
	t.t.Helper()
	reply, err := s.Do("HGET", admission.ConfigurationKey, t.options[group].Group)
	if err != nil {
		t.t.Fatal(err)
	}
	text, _ := reply.(string)
	return admission.ParseStored(text)
}

// has are the slots that a quorum of a group carries, and the version of its map.
func (t *twoGroups) has(group int) (owned, leaving string, version int64) {
	t.t.Helper()
	count := map[string]int{}
	for _, s := range t.servers[group] {
		now := t.carries(group, s).Now
		if now == nil || !strings.Contains(identity(t.t, s), "/epoch="+now.Mark()+"/") {
			continue
		}
		if count[now.Mark()]++; count[now.Mark()] == 2 {
			owned, leaving, version = now.Slots, now.Leaving, now.MapVersion
		}
	}
	return orAll(owned), leaving, version
}

// seed sets a counter on masters of a group, with the trust of their memories.
func (t *twoGroups) seed(group int, name string, value int64) {
	t.t.Helper()
	for i, s := range t.servers[group] {
		t.do(group, i, "SET", stored.Counters+name, fmt.Sprintf("%d@%s", value, strings.Fields(identity(t.t, s))[1]))
	}
}

func (t *twoGroups) do(group, i int, words ...any) any {
	t.t.Helper()
	reply, err := t.servers[group][i].Do(words...)
	if err != nil {
		t.t.Fatalf("%v: %v", words, err)
	}
	return reply
}

// counter wants a trusted value on all masters of a group; 0 = none.
func (t *twoGroups) counter(group int, name string, value int64) {
	t.t.Helper()
	for i, s := range t.servers[group] {
		want := ""
		if value > 0 {
			want = fmt.Sprintf("%d@%s", value, strings.Fields(identity(t.t, s))[1])
		}
		if got, _ := t.do(group, i, "GET", stored.Counters+name).(string); got != want {
			t.t.Errorf("master %d of group %d has counter %s = %q, want %q", i, group+1, name, got, want)
		}
	}
}

func TestMoveSlots_TakesCountersAndWorkAlong(t *testing.T) {
	t.Parallel()
	w := newTwoGroups(t)
	moves, stays := "{a}:moves", "{b}:stays" // other slots
	ranges := strconv.Itoa(slots.Of(moves))
	w.seed(0, moves, 100)
	w.seed(0, stays, 200)
	w.seed(1, moves, 900) // of an earlier time
	w.seed(1, "{a}:deleted", 5)
	for i := range 3 {
		w.do(0, i, "HSET", stored.Works+"{a}:work", "s", "D", "a", "3", "o", "token.3.5.1000.77", "m", "5", "k", "60000", "t", "text", "r", "result")
		w.do(0, i, "PEXPIRE", stored.Works+"{a}:work", 60000)
		w.do(1, i, "HSET", stored.Works+"{a}:old", "s", "D", "a", "3")
	}
	w.do(0, 0, "ZADD", "redlockd:seal", "XX", "INCR", 1000, identity(t, w.servers[0][0]))
	out := w.moved(ranges, "g2")
	for _, want := range []string{"slots " + ranges + " leave group g1 for group g2", "This cannot be taken back, only finished\n", "1 counters and 1 records of work go to group g2", "slots " + ranges + " are in group g2"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	w.counter(1, moves, 100)
	w.counter(1, stays, 0)
	w.counter(1, "{a}:deleted", 0)
	w.counter(0, stays, 200)
	register := func(group, i int) int64 {
		n, _ := strconv.ParseInt(w.do(group, i, "ZRANGE", "redlockd:seal", 0, -1, "WITHSCORES").([]any)[1].(string), 10, 64)
		return n
	}
	for i, s := range w.servers[1] {
		record := w.do(1, i, "HGETALL", stored.Works+"{a}:work").([]any)
		for field, want := range map[string]string{"s": "D", "a": "3", "o": "token.3.5.1000.77", "m": "5", "k": "60000", "t": "text", "r": "result", "u": "", "l": strings.Fields(identity(t, s))[1]} {
			if at := slices.Index(record, any(field)); at < 0 || record[at+1] != want {
				t.Errorf("master %d: field %s of the record: %q", i, field, record)
			}
		}
		if left := w.do(1, i, "PTTL", stored.Works+"{a}:work").(int64); left <= 0 || left > 60000 {
			t.Errorf("the record lasts %d ms", left)
		}
		if n := w.do(1, i, "EXISTS", stored.Works+"{a}:old").(int64); n != 0 {
			t.Error("a record of an earlier time is there")
		}
		if register(1, i) < register(0, 0) {
			t.Errorf("the register of master %d is %d, and one of g1 has %d", i, register(1, i), register(0, 0))
		}
	}
	if owned, leaving, version := w.has(1); owned != ranges || leaving != "" || version != 2 {
		t.Errorf("g2 has %q, leaving %q, version %d", owned, leaving, version)
	}
	if owned, leaving, version := w.has(0); strings.Contains(owned, ranges+",") || owned == "all" || leaving != ranges || version != 1 {
		t.Errorf("g1 has %q, leaving %q, version %d", owned, leaving, version)
	}
	if out := w.moved(ranges, "g2"); !strings.Contains(out, "in force already") {
		t.Error(out)
	}
	w.seed(1, moves, 150)
	w.moved(ranges, "g1")
	w.counter(0, moves, 150) // and not the 100 that g1 had
	if owned, leaving, _ := w.has(0); owned != "all" || leaving != "" {
		t.Errorf("g1 has %q, leaving %q", owned, leaving)
	}
	if owned, _, _ := w.has(1); owned != "none" {
		t.Errorf("g2 has %q", owned)
	}
	w.moved("0-16383", "g2")
	if owned, _, version := w.has(1); owned != "all" || version != 6 {
		t.Errorf("g2 has %q, version %d", owned, version)
	}
}

func TestMoveSlots_RefusesBeforeAnythingIsChanged(t *testing.T) {
	t.Parallel()
	w := newTwoGroups(t)
	w.refused("0-10", "g3", `"g3" is no group; nothing was changed; allowed: g1, g2`)
	w.seed(0, "lost", 7)
	ranges := strconv.Itoa(slots.Of("lost"))
	for i := range 2 {
		w.do(0, i, "SET", stored.Counters+"lost", "7@deadbeef")
	}
	w.refused(ranges, "g2", "counter 'lost' (database 0) is remembered by 1 trusted masters of group g1, 2 needed, and the highest value found is 7")
	w.moved("0-10", "g2")
	w.refused("5-20", "g1", "slots: 5-20 are not in one group: 11-20 in group g1, 5-10 in group g2")
	w.refused("5-20", "g2", "slots: 5-20 are not in one group: 11-20 in group g1, 5-10 in group g2")
	several := w.options[1]
	several.Prefixes = []string{"", "jobs:"}
	if out, err := reconfigure(t, several, false); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w.refused("20-30", "g2", `group g1 has the key prefixes [""], and group g2 has ["" "jobs:"]`)
	for _, one := range w.servers[1][:2] {
		one.Kill()
	}
	w.refusedSilent("20-30", "g2", "masters of group g2 answer")
	for _, one := range w.servers[1][:2] {
		one.Restart()
	}
	o := w.options[0]
	if err := MoveSlots(t.Context(), []pool.Options{o}, parsed(t, "0-5"), "g1", io.Discard); err == nil || !strings.Contains(err.Error(), "there is one group of masters") {
		t.Error(err)
	}
}

// refusedSilent is refused while some masters are down.
func (t *twoGroups) refusedSilent(ranges, to, text string, dial ...wire.Dialer) {
	t.t.Helper()
	if out, err := t.move(ranges, to, dial...); err == nil || !strings.Contains(err.Error(), text) {
		t.t.Errorf("%s to %s: %v, want %q\n%s", ranges, to, err, text, out)
	}
}

// A group whose fences were put far above the clocks gives no slots to one where they were not.
func TestMoveSlots_RefusesFencesThatAreFarApart(t *testing.T) {
	t.Parallel()
	w := newTwoGroups(t)
	for i := range 3 {
		w.do(0, i, "ZADD", "redlockd:seal", "XX", "INCR", 5e6, identity(t, w.servers[0][i]))
	}
	w.refused("0-10", "g2", "the fences of group g1 are")
}

// What g1 had forgotten, g2 does not take for never used.
func TestMoveSlots_ForgottenCountersStayUnknown(t *testing.T) {
	t.Parallel()
	w := newTwoGroups(t)
	for i := range 2 {
		text := identity(t, w.servers[0][i])
		parts := strings.SplitN(text, " ", 4)
		parts[2] = "1"
		w.do(0, i, "ZADD", "redlockd:seal", w.do(0, i, "ZSCORE", "redlockd:seal", text), strings.Join(parts, " "))
		w.do(0, i, "ZREM", "redlockd:seal", text)
	}
	w.moved("0-10", "g2")
	for i, s := range w.servers[1] {
		if base := strings.Fields(identity(t, s))[2]; base != "1" {
			t.Errorf("master %d of g2 has base %s: a counter that is missing is 0 there", i, base)
		}
	}
}

// One master of each group is away.
func TestMoveSlots_WithADeadMasterOfEachGroup(t *testing.T) {
	t.Parallel()
	w := newTwoGroups(t)
	w.seed(0, "{a}:n", 100)
	w.seed(1, "{a}:n", 900)
	ranges := strconv.Itoa(slots.Of("{a}"))
	old := identity(t, w.servers[1][1])
	for i := range w.servers {
		w.servers[i][1].Stop()
		w.away = append(w.away, w.servers[i][1])
	}
	out, err := w.move(ranges, "g2", w.brief())
	if n := strings.Count(strings.ReplaceAll(out, "is not reached: the daemons", ""), "is not reached: "); err != nil || n != len(w.away) {
		t.Fatalf("%v, and each dead master once in\n%s", err, out)
	}
	for i := range w.servers {
		w.servers[i][1].Cont()
	}
	if now := identity(t, w.servers[1][1]); now != old {
		t.Fatal(now)
	}
	// It missed what was carried over: its memory does not count.
	if out, err := reconfigure(t, w.options[1], false); err != nil || !strings.Contains(out, "new memories vote") {
		t.Errorf("%v\n%s", err, out)
	}
	if now := strings.Fields(identity(t, w.servers[1][1])); now[1] == strings.Fields(old)[1] || now[2] == "0" {
		t.Errorf("it keeps its incarnation: %q", now)
	}
	if owned, _, _ := w.has(1); owned != ranges {
		t.Error(owned)
	}
}

// Wherever the command ends, no slot has two groups, and the same command completes it.
func TestMoveSlots_ASecondRunCompletesWhatTheFirstBegan(t *testing.T) {
	t.Parallel()
	w := newTwoGroups(t)
	ranges := strconv.Itoa(slots.Of("{a}"))
	begin := func() {
		w.bootstrap()
		w.seed(0, "{a}:n", 100)
		w.seed(1, "{a}:n", 900)
	}
	begin()
	whole := newFragile(1 << 40)
	if out, err := w.move(ranges, "g2", whole.Dial); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	exchanges := int64(1<<40) - whole.left.Load()
	t.Logf("%d exchanges", exchanges)
	step := int64(11)
	if testing.Short() {
		step = 41
	}
	for n := int64(1); n < exchanges; n += step {
		begin()
		out, err := w.move(ranges, "g2", newFragile(n).Dial)
		g1, _, _ := w.has(0)
		g2, _, _ := w.has(1)
		if !(g1 == "all" && g2 == "none") && !(g1 != "all" && (g2 == "none" || g2 == ranges)) {
			t.Fatalf("after %d exchanges g1 has %q and g2 %q (%v)\n%s", n, g1, g2, err, out)
		}
		if out, err := w.move(ranges, "g2"); err != nil {
			t.Fatalf("again after %d exchanges: %v\n%s", n, err, out)
		}
		if owned, _, _ := w.has(1); owned != ranges {
			t.Fatalf("after %d exchanges g2 has %q", n, owned)
		}
		w.counter(1, "{a}:n", 100)
		if t.Failed() {
			t.Fatalf("after %d exchanges", n)
		}
	}
}

// Two operators move the same slots, or slots that overlap: each slot ends in one group, and what one
// does not finish, its command names.
func TestMoveSlots_TwoOperatorsAtOnce(t *testing.T) {
	t.Parallel()
	w := newTwoGroups(t)
	for round, ranges := range [][2]string{{"0-10", "0-10"}, {"20-30", "25-40"}} {
		w.bootstrap()
		w.seed(0, "{a}:n", 100)
		errs := make(chan error, 2)
		for _, one := range ranges {
			rs := parsed(t, one)
			go func() { errs <- MoveSlots(t.Context(), w.options, rs, "g2", io.Discard) }()
		}
		var failed []error
		for range ranges {
			select {
			case err := <-errs:
				if err != nil {
					failed = append(failed, err)
				}
			case <-time.After(time.Minute):
				t.Fatal("an operator's command does not end")
			}
		}
		t.Logf("round %d: %v", round, failed)
		for _, one := range ranges { // both again, one after the other
			if _, err := w.move(one, "g2"); err != nil && !strings.Contains(err.Error(), "are not in one group") {
				for _, other := range ranges {
					_, _ = w.move(other, "g2")
				}
				if out, err := w.move(one, "g2"); err != nil && !strings.Contains(err.Error(), "are not in one group") {
					t.Errorf("round %d: %s: %v\n%s", round, one, err, out)
				}
			}
		}
		g1, leaving, _ := w.has(0)
		g2, _, _ := w.has(1)
		one, two := parsedOwned(t, g1), parsedOwned(t, g2)
		if len(one.And(two)) > 0 || one.Plus(two).Len() != slots.Count || !two.Contains(parsed(t, ranges[0])) && !two.Contains(parsed(t, ranges[1])) {
			t.Errorf("round %d: g1 has %s, leaving %s, and g2 %s", round, g1, leaving, g2)
		}
	}
}

func parsedOwned(t *testing.T, text string) slots.Ranges {
	t.Helper()
	if text == "all" {
		return slots.All()
	}
	return parsed(t, text)
}

// A third group that is out of reach stops a move that has not begun, and no other.
func TestMoveSlots_BesideAGroupThatIsOutOfReach(t *testing.T) {
	t.Parallel()
	w := newTwoGroups(t)
	third := faulty.StartGroup(t, 3)
	o := optionsOf(third...)
	o.Group, o.Slots, o.RestartGuardOff, o.Tasks = "g3", "none", true, quick{w: w}
	if err := Bootstrap(t.Context(), o, BootstrapTerms{}, io.Discard); err != nil {
		t.Fatal(err)
	}
	w.cutOnly("0-10")
	w.options = append(w.options, o)
	out, err := strings.Builder{}, ShowSlots(t.Context(), w.options, nil, io.Discard)
	if err != nil {
		t.Error(err)
	}
	_ = ShowSlots(t.Context(), w.options, map[string]float64{RangeOf("11-16383", "g1"): 12.4}, &out)
	shown := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"0-10 11 g1 1 frozen for g2, to be finished: redlockd slots move 0-10 --to g2 -", "11-16383 16373 g1 1 owned 12", "- 0 g3 0 has no slots -"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
	for _, s := range third {
		s.Kill()
	}
	w.moved("0-10", "g2")
	w.refusedSilent("20-30", "g2", "The slots of all groups must be known when a move begins")
	w.refusedSilent("20-30", "g3", "0 of 3 masters of group g3 answer")
	if err := ShowSlots(t.Context(), w.options, nil, io.Discard); err == nil || !strings.Contains(err.Error(), "group g3") {
		t.Error(err)
	}
}

// A move to another group does not replace one that is unfinished, and a change of the masters works
// while slots are frozen.
func TestMoveSlots_WhileAnotherChangeIsUnfinished(t *testing.T) {
	t.Parallel()
	w := newTwoGroups(t)
	w.cutOnly("0-10")
	if _, leaving, _ := w.has(0); leaving != "0-10" {
		t.Fatal(leaving)
	}
	w.refused("20-30", "g2", "a move of 0-10 from group g1 is unfinished, and another one must not replace it; nothing was changed. A move cannot be taken back. First finish it: redlockd slots move 0-10 --to g2")
	w.refused("0-5", "g2", "First finish it: redlockd slots move 0-10 --to g2")
	w.refused("0-10", "g1", "First finish it: redlockd slots move 0-10 --to g2")
	d := faulty.Start(t)
	if out, err := changeMasters(t, w.options[0], "c", wire.Master{Name: "d", Network: "tcp", Address: d.Addr()}); err != nil || !strings.Contains(out, "group g1 has the slots all in the file and 11-16383 on its masters") {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, leaving, version := w.has(0); leaving != "0-10" || version != 1 {
		t.Errorf("after the change of the masters: leaving %q, version %d", leaving, version)
	}
	w.moved("0-10", "g2")
	if owned, _, _ := w.has(1); owned != "0-10" {
		t.Error(owned)
	}
}

// cutOnly stops after the cut, of g1 for g2.
func (t *twoGroups) cutOnly(ranges string) {
	t.t.Helper()
	t.cut(ranges, 0, 1)
}

func (t *twoGroups) cut(ranges string, from, to int) {
	t.t.Helper()
	all, dial := slices.Clone(t.options), wire.DialRueidis(stepTimeout)
	_, _, before := t.has(from)
	all[to].Dialer = func(ctx context.Context, m wire.Master, db int) (wire.Link, error) {
		if _, _, version := t.has(from); version != before {
			return nil, fmt.Errorf("the operator has stopped")
		}
		return dial(ctx, m, db)
	}
	if err := MoveSlots(t.t.Context(), all, parsed(t.t, ranges), all[to].Group, io.Discard); err == nil {
		t.t.Fatal("the move is complete")
	}
}

// Slots come back to a group for which another one gave them up long ago: what that one has is old.
func TestMoveSlots_AFormerCutIsNotTakenForTheOneThatWaits(t *testing.T) {
	t.Parallel()
	w := newGroups(t, 3)
	ranges := strconv.Itoa(slots.Of("{a}"))
	w.seed(0, "{a}:n", 100)
	w.moved(ranges, "g2")
	w.seed(1, "{a}:n", 200)
	w.moved(ranges, "g3")
	w.seed(2, "{a}:n", 300)
	w.cut(ranges, 2, 1)
	for i := range 3 {
		if _, leaving, _ := w.has(i); leaving != ranges {
			t.Fatalf("group %d gave up %q", i+1, leaving)
		}
	}
	w.refused(ranges, "g1", "a move of "+ranges+" from group g3 is unfinished")
	w.away = w.servers[2]
	for _, s := range w.away {
		s.Stop()
	}
	w.refusedSilent(ranges, "g2", "gave up "+ranges+", and a later move may be known to others alone", w.brief())
	for _, s := range w.away {
		s.Cont()
	}
	w.away = nil
	w.moved(ranges, "g2")
	w.counter(1, "{a}:n", 300)
}

// An older file changes nothing on masters whose slots have moved.
func TestMoveSlots_AnOlderFileUndoesNothing(t *testing.T) {
	t.Parallel()
	w := newTwoGroups(t)
	w.moved("0-99", "g2")
	before := w.texts()
	note := "group g1 has the slots all in the file and 100-16383 on its masters, since a later move"
	if out, err := check(t, w.options[0]); err != nil || !strings.Contains(out, note) {
		t.Errorf("check: %v\n%s", err, out)
	}
	if out, err := reconfigure(t, w.options[0], false); err != nil || !strings.Contains(out, note) || !strings.Contains(out, "in force already") {
		t.Errorf("reconfigure: %v\n%s", err, out)
	}
	if err := CheckSlots(t.Context(), w.options...); err != nil {
		t.Error(err)
	}
	if err := Bootstrap(t.Context(), w.options[0], BootstrapTerms{}, io.Discard); err == nil || !strings.Contains(err.Error(), "has an identity already") {
		t.Error(err)
	}
	if now := w.texts(); !slices.Equal(now, before) {
		t.Errorf("%q", now)
	}
	longer := w.options[0]
	longer.MaxTTL = 2 * brief
	if out, err := reconfigure(t, longer, false); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if owned, _, version := w.has(0); owned != "100-16383" || version != 1 {
		t.Errorf("another limit: g1 has %q, version %d", owned, version)
	}
	// All of g2 is lost: the file says that it has none, and g1 has given them up.
	for _, s := range w.servers[1] {
		s.FlushAll()
	}
	if err := CheckSlots(t.Context(), w.options...); err == nil || !strings.Contains(err.Error(), "slots 0-99 are in no group") {
		t.Error(err)
	}
	w.options[1].Slots = "0-99"
	if err := CheckSlots(t.Context(), w.options...); err != nil {
		t.Error(err)
	}
	w.options[1].Slots = "0-200"
	if err := CheckSlots(t.Context(), w.options...); err == nil || !strings.Contains(err.Error(), "slots 100-200 are in the groups g1 and g2") {
		t.Error(err)
	}
}

// What a quorum has forgotten in a database may have been a later configuration. A daemon that uses the
// database knows that from the others.
func TestMoveSlots_ABlankDatabaseIsNamed(t *testing.T) {
	t.Parallel()
	w := newTwoGroups(t)
	for _, s := range w.servers[0][:2] {
		if _, err := s.Do("EVAL", "redis.call('SELECT', 1) redis.call('FLUSHDB')", 0); err != nil {
			t.Fatal(err)
		}
	}
	w.refused("0-10", "g2", "1 masters of group g1 answer and have a configuration, 2 are needed to know its slots; in database 1, b is blank: redis-cli -n 1 -h DAEMON -p PORT DMASTERS lets a daemon begin there")
	daemons := w.options[0]
	daemons.Tasks = nil
	for _, lane := range []int{0, 1} {
		seenIn(t, daemons, 1, lane, "voting")
	}
	if _, err := w.move("0-10", "g2"); err != nil && strings.Contains(err.Error(), "is blank") { // the fences of g2 may be too far behind
		t.Error(err)
	}
}
