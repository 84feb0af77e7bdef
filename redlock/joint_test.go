package redlock

// joint_test.go: one lock of keys of two groups of masters, and who may vote about a slot.

import (
	"testing"
	"time"

	"redlockd/pool"
)

// slotted has a daemon serve some slots of a group.
func slotted(slots string) trait {
	return func(_ *daemon, o *pool.Options) { o.Slots = slots }
}

// Rule: slots. Two daemons with different maps would serve one key in two groups.
func TestAdmission_ADaemonWithAnotherMapGetsNoQuorum(t *testing.T) {
	t.Parallel()
	low, high := newCluster(t, 3, long), newCluster(t, 3, long)
	one := low.daemon(slotted("0-8191"))
	high.daemon(slotted("8192-16383"))
	other := high.startDaemon(slotted("0-8191"))
	other.idle()
	g := one.take("k", time.Minute)
	if h, err := other.lockAs("k", "token-of-a-caller", time.Minute); err == nil {
		t.Fatalf("two tokens hold %q: %s for %v in one group, and one for %v in the other", "k", g.Token.ShortHash(), g.Validity(), h.Validity())
	}
	keptOut(t, other, 0, "slots is 0-8191 here and 8192-16383 there")
}

// Rule: joint-fence. The fence of both is that of the group whose registers are ahead. Without a
// further seal, the next lock of the other group's key would have a smaller one.
func TestJoint_TheFenceIsBelowThoseOfLaterLocksInEachGroup(t *testing.T) {
	t.Parallel()
	j := &jointStand{t: t, clusters: [2]*cluster{newCluster(t, 3, long), newCluster(t, 3, long)}}
	for i, c := range j.clusters {
		j.daemons[i] = c.daemon()
		j.last[i] = rises(t, j.daemons[i], 0)
	}
	// A clock that has passed the registers rises above the fence by itself.
	for range 100 {
		if far := j.play(); time.Now().UnixMicro() < far || t.Failed() {
			return
		}
	}
	t.Fatal("the clocks passed the registers each time: the test proves nothing")
}

// jointStand is two groups with a daemon each, and the last fence of each.
type jointStand struct {
	t        *testing.T
	clusters [2]*cluster
	daemons  [2]*daemon
	last     [2]Fence
}

// play locks a key of both groups, whose registers are ahead of the clocks, those of the second one
// until the time that it returns, and then a key of each.
func (j *jointStand) play() (far int64) {
	t := j.t
	t.Helper()
	now := time.Now()
	far = now.Add(450 * time.Millisecond).UnixMicro()
	for i := range 3 {
		j.clusters[0].raise(i, now.Add(400*time.Millisecond).UnixMicro())
		j.clusters[1].raise(i, far)
	}
	for i := range j.last {
		j.last[i] = rises(t, j.daemons[i], j.last[i]) // they see the registers now
	}
	var parts []*Part
	request := LockRequest{Key: "k", TTL: long, Mode: PartOf("")}
	for _, d := range j.daemons {
		answer := receive(t, d.request(request))
		if answer.err != nil {
			t.Fatal(answer.err)
		}
		request.Mode = PartOf(answer.grant.Token)
		parts = append(parts, &Part{Leases: d.Leases, Grant: answer.grant})
	}
	answers := make(chan lockAnswer, 1)
	Join(&LockRequest{Key: "k", TTL: long}, parts, func(g Grant, err error) { answers <- lockAnswer{g, err} })
	both := receive(t, answers)
	if both.err != nil {
		t.Fatal(both.err)
	}
	// The registers follow the fence and not more: otherwise two groups would drive one another
	// ahead of their clocks, lock by lock.
	for i := range 3 {
		if ahead := j.clusters[0].register(i) - max(int64(both.grant.Fence), time.Now().UnixMicro()); ahead > 10_000 {
			t.Errorf("the register of master %d is %d µs ahead of the fence of both", i, ahead)
		}
	}
	if low := parts[0].Grant.Until(); both.grant.Until() > low {
		t.Errorf("it is valid until %v, and a part until %v", both.grant.Until(), low)
	}
	for i, d := range j.daemons {
		if both.grant.Fence <= j.last[i] {
			t.Errorf("fence %d was given after %d in group %d", both.grant.Fence, j.last[i], i)
		}
		d.free("k", both.grant.Token)
		j.last[i] = rises(t, d, both.grant.Fence)
	}
	return far
}

// A part may have been extended when another part is refused: no undo would match its copies.
func TestJoin_APartThatWasExtendedIsGivenBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	whole := Token("token-of-the-whole")
	r := LockRequest{Key: "k", TTL: long, Mode: PartOf(whole)}
	part := receive(t, d.request(r))
	if part.err != nil {
		t.Fatal(part.err)
	}
	if _, err := d.extend(r.Key, whole, long); err != nil {
		t.Fatal(err)
	}
	happened := make(chan Event, 9)
	defer d.Listen(0, func(e Event) { happened <- e })()
	GiveBackParts([]*Part{{Leases: d.Leases, Grant: part.grant}})
	eventually(t, "nothing is left", func() bool { return c.empty(0, 1, 2) })
	d.take("last", long)
	if e := receive(t, happened); e.Key != "last" {
		t.Errorf("%+v is announced, and the part was not", e)
	}
}
