package redlock

// moves_test.go: what daemons make of slots that setup.MoveSlots gave to another group. Here each
// daemon serves one group; the simulation has daemons that serve several during the move.

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/faulty"
	"redlockd/pool/setup"
	"redlockd/redlock/slots"
)

// movable are two groups, and the range of the names with the tag {a}.
type movable struct {
	t      *testing.T
	groups [2]*cluster
	ranges slots.Ranges
}

const movableTTL = time.Second

// hasty are tasks for which the short pauses of a command take no time: those for leases do.
type hasty struct{ pool.Tasks }

func (hasty) Sleep(d time.Duration) {
	if d >= 2*time.Second {
		time.Sleep(d)
	}
}

// newMovable bootstraps both groups with all fences above those given.
func newMovable(t *testing.T, ttl time.Duration, fences ...int64) *movable {
	t.Helper()
	slot := slots.Of("{a}")
	m := &movable{t: t, ranges: slots.Ranges{{First: slot, Last: slot}}}
	for i := range m.groups {
		m.groups[i] = newCluster(t, 3, ttl, durable...)
		m.groups[i].born = true
		if err := setup.Bootstrap(t.Context(), m.options(i), setup.BootstrapTerms{FenceAbove: append(fences, 0, 0)[i]}, t.Output()); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func (m *movable) trait(i int, owned string) trait {
	return func(_ *daemon, o *pool.Options) {
		o.Group, o.Slots, o.MaxKeep = "g"+strconv.Itoa(i+1), owned, time.Minute
	}
}

func (m *movable) options(i int) pool.Options {
	o := m.groups[i].options()
	m.trait(i, [2]string{"", "none"}[i])(nil, &o)
	return o
}

// serves starts a daemon of the group that has the range.
func (m *movable) serves(i int) *daemon {
	m.t.Helper()
	owned := m.ranges.String()
	if i == 0 {
		owned = ""
	}
	return m.groups[i].daemon(m.trait(i, owned))
}

// move moves the range; the operator does not reach some masters of the first group.
func (m *movable) move(to int, unreached ...int) {
	m.t.Helper()
	var out strings.Builder
	all := []pool.Options{m.options(0), m.options(1)}
	for i := range all {
		all[i].Tasks = hasty{}
	}
	for _, i := range unreached {
		all[0].Masters[i].Address = faulty.FreeAddr(m.t)
	}
	if err := setup.MoveSlots(m.t.Context(), all, m.ranges, "g"+strconv.Itoa(to+1), &out); err != nil {
		m.t.Fatalf("%v\n%s", err, out.String())
	}
}

// Rules: slots-counters-not-installed, slots-stale-counters.
func TestMoves_IDsAreNotRepeatedOverThereAndBack(t *testing.T) {
	t.Parallel()
	m := newMovable(t, movableTTL)
	last := int64(0)
	for i, at := range []int{0, 1, 0, 1} {
		if i > 0 {
			m.move(at)
		}
		d := m.serves(at)
		for range 3 {
			first := d.draw("{a}:n", 10)
			if first <= last {
				t.Fatalf("id %d was given again: %d was the last one, and then the slots moved %d times", first, last, i)
			}
			last = first + 9
		}
		if err := d.Close(patience); err != nil {
			t.Fatal(err)
		}
	}
	if last != 120 {
		t.Errorf("the last id is %d, 120 were given", last)
	}
}

func TestMoves_WorkIsKnownAfterwards(t *testing.T) {
	t.Parallel()
	m := newMovable(t, movableTTL)
	d := m.serves(0)
	request := func(key Key) WorkRequest {
		return WorkRequest{Key: key, Timeout: movableTTL, Max: 3, Keep: time.Minute}
	}
	d.finishWith(d.find(request("{a}:done"), WorkAcquired, 1), "result")
	died := d.find(request("{a}:died"), WorkAcquired, 1)
	d.giveUp(d.find(request("{a}:failed"), WorkAcquired, 1), true)
	if err := d.Close(patience); err != nil {
		t.Fatal(err)
	}
	m.move(1)
	d = m.serves(1)
	d.leftBy(request("{a}:done"), 1, "result")
	second := d.find(request("{a}:died"), WorkAcquired, 2)
	d.finish(died, false) // the second attempt took over
	d.finish(second, true)
	d.find(request("{a}:failed"), WorkAcquired, 2)
	d.find(request("{a}:new"), WorkAcquired, 1)
}

// Rule: slots-registers-not-raised. Both groups' fences are far above the clocks, those of the first
// one by more.
func TestMoves_FencesRise(t *testing.T) {
	t.Parallel()
	const g2 = int64(1) << 51
	m := newMovable(t, movableTTL, g2+int64(movableTTL/time.Microsecond)/2, g2)
	d := m.serves(0)
	before := d.take("{a}:k", movableTTL)
	d.free("{a}:k", before.Token)
	if err := d.Close(patience); err != nil {
		t.Fatal(err)
	}
	m.move(1)
	if after := m.serves(1).take("{a}:k", movableTTL); after.Fence <= before.Fence {
		t.Errorf("fence %d was given after %d", after.Fence, before.Fence)
	}
}

// Rule: slots-no-freeze. Without the freeze the command is over long before the lease.
func TestMoves_NoLeaseOutlivesTheFreeze(t *testing.T) {
	t.Parallel()
	const ttl = 15 * time.Second
	m := newMovable(t, ttl)
	d := m.serves(0)
	held := d.take("{a}:k", ttl)
	m.move(1)
	if left := held.Validity(); left > 0 {
		t.Fatalf("the lease lasts for %v, and its slot has another group", left)
	}
	m.serves(1).take("{a}:k", ttl)
}

// Rule: older-file. A master of the source that was not reached keeps the slots that have moved, and
// another one gets them back with an older file.
func TestMoves_AnOlderFileGivesTheSourceNoSlotBack(t *testing.T) {
	t.Parallel()
	m := newMovable(t, movableTTL)
	source := m.groups[0]
	for i := range source.servers { // the end of what it wrote may be lost
		source.do(i, "CONFIG", "SET", "appendfsync", "everysec")
	}
	former := source.daemon(m.trait(0, ""), relayed, pinned)
	restore := source.backUp(0)
	former.leave(1)
	m.move(1, 2)
	restore()
	former.await(0, "down")
	source.servers[0].Restart()
	former.voteOrNot(0)
	former.idle()
	held := m.serves(1).take("{a}:k", movableTTL)
	g, err := former.lockAs("{a}:k", "token-of-a-caller", movableTTL)
	if err == nil && held.Validity() > 0 {
		t.Fatalf("two tokens hold %q: one for %v in the target, and one for %v in the source", "{a}:k", held.Validity(), g.Validity())
	}
	noQuorum(t, err, "of 3")
}
