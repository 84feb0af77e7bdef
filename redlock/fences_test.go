package redlock

// fences_test.go: a grant that was answered before another was requested has the smaller fence,
// whichever daemons gave them and whatever the registers hold.

import (
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/faulty"
)

// ahead is a register that no clock reaches during a test.
func ahead() int64 { return time.Now().Add(time.Minute).UnixMicro() }

// rises takes and releases the key and wants a fence above the last one.
func rises(t *testing.T, d *daemon, last Fence) Fence {
	t.Helper()
	g := d.take("k", 10*time.Second)
	d.free("k", g.Token)
	if g.Fence <= last {
		t.Fatalf("fence %d was given after %d", g.Fence, last)
	}
	return g.Fence
}

// Rule: low-end. Two daemons have no record of registers that a third has followed far ahead of
// the clocks: only the old value at their voters shows them.
func TestFence_RisesAboveRegistersThatAreFarAhead(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two, three := c.daemon(), c.daemon(blind), c.daemon(blind)
	far := ahead()
	c.raise(0, far)
	c.raise(1, far)
	rises(t, one, 0) // it sees the registers now, and its next fence lies above them
	last := rises(t, one, Fence(far))
	last = rises(t, two, last)
	last = rises(t, three, last)
	last = rises(t, c.startDaemon(), last)
	rises(t, one, last)
}

// Rule: gt. A refused attempt raises the registers, too; where they are higher
// already it must leave them there, or the next daemon finds no trace.
func TestFence_OfARefusedAttemptLowersNoRegister(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two, three := c.daemon(), c.daemon(relayed, blind), c.daemon(blind)
	for i, r := range two.relays {
		c.raise(i, ahead())
		r.Delay(30*time.Millisecond, faulty.ToClient) // all is sent before anything is learned
	}
	rises(t, one, 0)
	held := one.take("k", long)
	two.refuse("k", time.Second)
	two.idle()
	one.free("k", held.Token)
	rises(t, three, held.Fence)
}

// Rule: fence-vote. While the first request is on its way to a and b, and refused by c, another
// lock comes and goes on a and c. What c answered before that must not lend its interval to the
// lock that a and b give afterwards.
func TestFence_LiesInTheIntervalsOfMastersThatGaveTheLock(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(relayed), c.daemon(relayed, blind, patient)
	one.relays[1].Refuse()
	one.relays[1].Cut()
	one.await(1, "down")
	c.do(2, "SET", "k", "somebody else's", "PX", long.Milliseconds())
	two.relays[0].Pause(faulty.ToMaster)
	two.relays[1].Pause(faulty.ToMaster)
	register := c.register(2)
	answer := two.request(LockRequest{Key: "k", TTL: 10 * time.Second})
	eventually(t, "c has refused", func() bool { return c.register(2) > register })
	c.do(2, "DEL", "k")
	far := ahead()
	c.raise(0, far)
	c.raise(2, far)
	rises(t, one, 0) // it sees the registers now
	last := rises(t, one, Fence(far))
	two.relays[0].Resume()
	two.relays[1].Resume()
	a := receive(t, answer)
	if a.err != nil || a.grant.Fence <= last {
		t.Errorf("granted with fence %d, %v, after %d was given and released", a.grant.Fence, a.err, last)
	}
}

// patient waits long for its masters.
func patient(_ *daemon, o *pool.Options) { o.MasterTimeout = 5 * time.Second }

// Rule: one-flush. Only what is refused beside the first one may follow it.
func TestFence_AReaderBehindALockOfTheKeySharesNoFlush(t *testing.T) {
	c := newCluster(t, 3, long)
	p := new(tap)
	one := c.daemon(p.tapped)
	var b Batch
	first, second := make(chan lockAnswer, 1), make(chan lockAnswer, 1)
	one.Lock(&b, LockRequest{Key: "k", TTL: long}, func(g Grant, err error) { first <- lockAnswer{g, err} })
	one.Lock(&b, LockRequest{Key: "k", TTL: long, Mode: Readers}, func(g Grant, err error) { second <- lockAnswer{g, err} })
	b.Send()
	if a := receive(t, first); a.err != nil {
		t.Fatalf("the first of two in one batch: %v", a.err)
	}
	isHeld(t, receive(t, second).err)
	for i := range c.servers {
		for _, flush := range p.to(name(i)) {
			if n := count(flush, "SET k "); n > 0 && count(flush, "EVALSHA") > 0 {
				t.Errorf("master %s: two locks of one key in one flush: %q", name(i), flush)
			}
		}
	}
}

// Locks of a key that exclude one another share a flush: one is granted.
func TestFence_LocksOfOneKeyShareAFlushAndOneIsGranted(t *testing.T) {
	const tries = 10
	c := newCluster(t, 3, long)
	p := new(tap)
	one := c.daemon(p.tapped)
	var b Batch
	answers := make(chan error, tries)
	for range tries {
		one.Lock(&b, LockRequest{Key: "k", TTL: long}, func(_ Grant, err error) { answers <- err })
	}
	b.Send()
	granted := 0
	for range tries {
		if err := receive(t, answers); err == nil {
			granted++
		} else {
			isHeld(t, err)
		}
	}
	if granted != 1 {
		t.Errorf("%d of %d are granted, want 1", granted, tries)
	}
	for i := range c.servers { // two masters decide: the third one's flush may follow the answers
		eventually(t, "all tries share a flush to master "+name(i), func() bool {
			return slices.ContainsFunc(p.to(name(i)), func(flush []string) bool { return count(flush, "SET k ") == tries })
		})
	}
}

// Rule: one-taker. The key is deleted by hand between two locks of one flush, so both
// find it free: the seal cannot order them, and the second one does not count.
func TestFence_OfTwoLocksThatSucceedInOneFlushOneCounts(t *testing.T) {
	c := newCluster(t, 3, long)
	p := new(tap)
	one := c.daemon(blind, p.tapped)
	p.between(func(master string) {
		for i := range c.servers {
			if name(i) == master {
				c.do(i, "DEL", "k")
			}
		}
	})
	var b Batch
	first, second := make(chan lockAnswer, 1), make(chan lockAnswer, 1)
	for _, answer := range []chan lockAnswer{first, second} {
		one.Lock(&b, LockRequest{Key: "k", TTL: long}, func(g Grant, err error) { answer <- lockAnswer{g, err} })
	}
	b.Send()
	if a := receive(t, first); a.err != nil {
		t.Fatalf("the first of two in one batch: %v", a.err)
	}
	if a := receive(t, second); a.err == nil {
		t.Fatal("two locks that succeeded in one flush are both granted")
	} else {
		noQuorum(t, a.err)
	}
	p.between(nil)
	eventually(t, "what does not count is given back", func() bool { return c.empty(0, 1, 2) })
}

// Rule: late. Nothing fires when the flush has been under way for too long, as
// in a daemon that was not run for a while: the answer is there when it looks.
func TestVote_ThatIsExecutedAfterTheMasterTimeoutDoesNotCount(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	asleep := func(d *daemon, _ *pool.Options) { d.clock.Hold(impatient) }
	one := c.daemon(relayed, blind, timeout(impatient), asleep)
	if one.clock.KeptTimers() < 3 {
		t.Fatal("the flushes' timers are not held: the test proves nothing")
	}
	for _, r := range one.relays {
		r.Delay(impatient+50*time.Millisecond, faulty.ToMaster)
	}
	g, err := one.lock("k", 10*time.Second)
	if err == nil {
		t.Fatalf("granted for %v by masters that executed it after %v", g.Validity(), impatient)
	}
	noQuorum(t, err, "0 of 3")
	for _, r := range one.relays {
		r.Delay(0)
	}
	eventually(t, "the late copies are given back", func() bool { return c.empty(0, 1, 2) })
}

// The same answers count if it was only this process that read them late.
func TestVote_ThatThisProcessReadsLateCounts(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	asleep := func(d *daemon, _ *pool.Options) { d.clock.Hold(impatient) }
	one := c.daemon(relayed, blind, timeout(impatient), asleep)
	for _, r := range one.relays {
		r.Delay(impatient+50*time.Millisecond, faulty.ToClient)
	}
	before := one.engine.Pool.Counters()
	_, err := one.lock("k", 10*time.Second)
	switch after := one.engine.Pool.Counters(); {
	case after.LateFlushes > before.LateFlushes || after.Dials > before.Dials:
		t.Skipf("this machine was too slow: a master executed a flush late, or lost its connection (%v)", err)
	case err != nil:
		t.Errorf("%v, want a grant: the masters executed it in time", err)
	case after.LateReads == before.LateReads:
		t.Error("nothing was read late: the test proves nothing")
	}
}

// count is how many lines begin so.
func count(lines []string, prefix string) (n int) {
	for _, line := range lines {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}
