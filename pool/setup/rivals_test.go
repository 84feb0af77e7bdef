package setup

// rivals_test.go: two operators change the masters at once.

import (
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/faulty"
	"redlockd/pool/wire"
)

// operator runs one change.
type operator struct {
	options     pool.Options
	before      func(renames int)
	renames     int
	began, over chan struct{} // closed after its first rename, and at its end
	out         string
	err         error
}

// newOperator waits before each rename until the other operator has come so far.
func newOperator(o pool.Options) *operator {
	op := &operator{options: o, began: make(chan struct{}), over: make(chan struct{})}
	op.options.Dialer = hooked(wire.DialRueidis(stepTimeout), func(_ string, commands []wire.Command, exchange func() []wire.Reply) []wire.Reply {
		if !runs(commands, renameScript) {
			return exchange()
		}
		op.before(op.renames)
		replies := exchange()
		if op.renames++; op.renames == 1 {
			close(op.began)
		}
		return replies
	})
	return op
}

func (op *operator) run(t *testing.T) {
	defer close(op.over)
	op.out, op.err = reconfigure(t, op.options, false)
}

// Each begins with a master of its own list. They rename in turns, so that neither would
// reach enough masters if the loser went on.
func TestReconfigure_OfTwoChangesAtOnceOneIsMadeAndTheOtherRefused(t *testing.T) {
	t.Parallel()
	servers, _ := bootstrapped(t, 3)
	a, b, c, d, e := servers[0], servers[1], servers[2], faulty.Start(t), faulty.Start(t)
	one := newOperator(renamed(optionsOf(a, b, d), "a", "b", "d"))
	two := newOperator(renamed(optionsOf(b, c, e), "b", "c", "e"))
	await := func(all ...chan struct{}) {
		select {
		case <-all[0]:
		case <-all[len(all)-1]:
		case <-time.After(time.Minute):
		}
	}
	ready := make(chan struct{})
	one.before = func(renames int) {
		if renames == 0 {
			await(ready, two.over) // two has planned its change
		} else {
			await(two.began, two.over)
		}
	}
	two.before = func(renames int) {
		if renames == 0 {
			close(ready)
			await(one.began, one.over)
		} else {
			await(one.over)
		}
	}
	go two.run(t)
	one.run(t)
	await(two.over)
	if one.err != nil || !strings.Contains(one.out, "epoch 2 is in force") {
		t.Errorf("the first one: %v\n%s", one.err, one.out)
	}
	list := "a=" + a.Addr() + ",b=" + b.Addr() + ",d=" + d.Addr()
	if want := "another change, to epoch 2, came first on master a; nothing was changed by this one. Wait until it is finished, then run this one again; if its operator is gone, finish it with redlockd reconfigure --masters " + list; two.err == nil || !strings.Contains(two.err.Error(), want) {
		t.Errorf("the second one: %v, want %q\n%s", two.err, want, two.out)
	}
	carry(t, "2", a, b, c, d)
	if got := identity(t, e); got != "" {
		t.Errorf("e has %q", got)
	}
	now := renamed(optionsOf(a, b, d), "a", "b", "d")
	for lane := range 3 {
		seen(t, now, lane, "voting")
	}
}

// Whatever the machine makes of it, the masters never carry more than one change of an epoch.
func TestReconfigure_ChangesAtOnceEndInOneConfiguration(t *testing.T) {
	servers, first := bootstrapped(t, 3)
	all := append(servers, faulty.StartGroup(t, 3)...)
	operators := make([]*operator, 3)
	for i := range operators {
		operators[i] = newOperator(first)
		operators[i].before = func(int) {}
	}
	for i, op := range operators {
		op.options.Masters = []wire.Master{masterAt("a", servers[0]), masterAt("b", servers[1]), masterAt("c", servers[2])}
		op.options.Masters[i] = masterAt(string(rune('d'+i)), all[3+i])
		go op.run(t)
	}
	var made []string
	for i, op := range operators {
		select {
		case <-op.over:
		case <-time.After(time.Minute):
			t.Fatal("an operator's command does not end")
		}
		if op.err == nil {
			made = append(made, string(rune('d'+i)))
			continue
		}
		text := op.err.Error()
		if !strings.Contains(text, "nothing was changed") && !strings.Contains(text, "a change to epoch 2 is unfinished, and another one must not replace it") {
			t.Errorf("operator %d: %v\n%s", i, op.err, op.out)
		}
	}
	if len(made) == 0 {
		t.Fatal("no change was made")
	}
	t.Logf("these joined: %v", made)
	g, err := newGroup(first, stepTimeout)
	if err != nil {
		t.Fatal(err)
	}
	last, err := g.presentList(t.Context())
	if err != nil || !last.InForce {
		t.Fatal(last, err)
	}
	for i, s := range all {
		if in := has(last.Now, string(rune('a'+i))); in && !strings.Contains(identity(t, s), "/epoch="+last.Now.Mark()+"/") {
			t.Errorf("master %d carries %q, and the group has %s", i, identity(t, s), last.Now.Mark())
		}
	}
}

// Each operator has reached a half of four masters, and none has a quorum. The same commands, run
// again, end with one of the two changes.
func TestReconfigure_TwoChangesThatSplitTheMastersEndInOne(t *testing.T) {
	t.Parallel()
	servers, o := bootstrapped(t, 4)
	e, f := faulty.Start(t), faulty.Start(t)
	lists := []pool.Options{renamed(optionsOf(servers[0], servers[1], servers[2], e), "a", "b", "c", "e"), renamed(optionsOf(servers[1], servers[2], servers[3], f), "b", "c", "d", "f")}
	if err := o.WithDefaults(); err != nil {
		t.Fatal(err)
	}
	for i, own := range lists {
		g, err := newGroup(own, stepTimeout)
		if err != nil {
			t.Fatal(err)
		}
		c := &change{group: g, out: io.Discard, former: o.Configuration(1), next: g.options.Configuration(2)}
		c.connect(t.Context(), o.Masters[2*i:2*i+2])
		defer closeAll(c.all)
		if err := c.renameAll(false); err != nil {
			t.Fatal(err)
		}
		lists[i] = g.options
	}
	low, high := lists[0], lists[1]
	names := high.Configuration(2).Names()
	if out, err := reconfigure(t, low, false); err == nil || !strings.Contains(err.Error(), "first finish it with redlockd reconfigure --masters "+names) {
		t.Errorf("the change of lower order: %v\n%s", err, out)
	}
	if out, err := reconfigure(t, high, false); err != nil || !strings.Contains(out, "epoch 2 is in force") {
		t.Fatalf("the change of higher order: %v\n%s", err, out)
	}
	for i, s := range servers {
		if got := identity(t, s); !strings.Contains(got, "/epoch="+high.Configuration(2).Mark()+"/") {
			t.Errorf("master %d carries %q", i, got)
		}
	}
	for lane := range high.Masters {
		seen(t, high, lane, "voting")
	}
}

// model is the masters of a former list, and the changes that have had each.
type model struct {
	carries []string
	ever    []map[string]bool
}

// rivalTool renames one master a step, by what it read before, as renameAll does.
type rivalTool struct {
	mark   string
	reach  []int
	read   []string // at its last reading, of those that it reaches
	master int
}

func (m *model) step(tool *rivalTool, random *rand.Rand) {
	n := len(m.carries)
	if tool.master == len(tool.reach) { // it reads again
		tool.reach, tool.read, tool.master = random.Perm(n)[:pool.Quorum(n)+random.IntN(n-pool.Quorum(n)+1)], nil, 0
		for _, i := range tool.reach {
			tool.read = append(tool.read, m.carries[i])
		}
		return
	}
	i := tool.reach[tool.master]
	tool.master++
	if now := m.carries[i]; now == "" || now < tool.mark && isLost(now, tool.read, n) {
		m.carries[i] = tool.mark
		m.ever[i][tool.mark] = true
	}
}

// counted are the changes that a daemon could count a quorum of, at whatever moments it looks.
func (m *model) counted() (marks []string) {
	for _, mark := range []string{"2-a", "2-b", "2-c"} {
		n := 0
		for _, ever := range m.ever {
			if ever[mark] {
				n++
			}
		}
		if n >= pool.Quorum(len(m.ever)) {
			marks = append(marks, mark)
		}
	}
	return marks
}

// Operators read and rename in any order, and reach a quorum each. No two changes ever have a
// quorum, and when all masters answer, one has.
func TestRivals_OneChangeGetsAQuorum(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for world := range 200_000 {
		n := 3 + random.IntN(4)
		m := &model{carries: make([]string, n)}
		for range n {
			m.ever = append(m.ever, map[string]bool{})
		}
		tools := []*rivalTool{{mark: "2-a"}, {mark: "2-b"}, {mark: "2-c"}}[:2+random.IntN(2)]
		for range random.IntN(12 * n) {
			m.step(tools[random.IntN(len(tools))], random)
		}
		for range 4 { // the same commands again, one after the other, on all masters
			for _, tool := range tools {
				tool.reach, tool.read, tool.master = nil, slices.Clone(m.carries), 0
				for i := range n {
					tool.reach = append(tool.reach, i)
				}
				for range n {
					m.step(tool, random)
				}
			}
		}
		if got := m.counted(); len(got) != 1 {
			t.Fatalf("world %d: of %d masters these changes had a quorum: %q; they carry %q", world, n, got, m.carries)
		}
	}
}
