package redlock

// tokens_test.go: a caller's own token names one lock, however often it is repeated.

import (
	"testing"
	"time"
)

const own = Token("token-of-a-caller")

func TestToken_ARepeatIsTheSameLockWithANewFence(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	first := one.takeAs("k", own, 5*time.Second)
	if !first.Fresh || first.Token != own {
		t.Errorf("the first grant: %+v, want a fresh one with the caller's token", first)
	}
	last := first.Fence
	for _, d := range []*daemon{one, two} {
		again := d.takeAs("k", own, 20*time.Second)
		if again.Fresh || again.Fence <= last || again.Validity() < 15*time.Second {
			t.Errorf("the repeat: fresh %v, fence %d after %d, validity %v", again.Fresh, again.Fence, last, again.Validity())
		}
		last = again.Fence
	}
	isHeld(t, two.refuse("k", long))
	two.free("k", own)
	eventually(t, "nothing is left", func() bool { return c.empty(0, 1, 2) })
}

// A repeat must not count what an attempt before it is about to take back, and a
// release must not overtake it: in one daemon they take turns.
func TestToken_ConcurrentRepeatsRunOneAfterAnother(t *testing.T) {
	t.Parallel()
	const repeats = 50
	c := newCluster(t, 3, long)
	one := c.daemon()
	var answers []<-chan lockAnswer
	for range repeats {
		answers = append(answers, one.request(LockRequest{Key: "k", TTL: 10 * time.Second, Token: own}))
	}
	last := Fence(0)
	for i, answer := range answers {
		a := receive(t, answer)
		if a.err != nil || a.grant.Fence <= last || a.grant.Fresh != (i == 0) {
			t.Fatalf("repeat %d: fresh %v, fence %d after %d, %v", i, a.grant.Fresh, a.grant.Fence, last, a.err)
		}
		last = a.grant.Fence
	}
	asked := one.request(LockRequest{Key: "k", TTL: 10 * time.Second, Token: own})
	one.free("k", own) // asked for while the repeat is under way
	if a := receive(t, asked); a.err != nil {
		t.Errorf("the repeat before the release: %v", a.err)
	}
	eventually(t, "nothing is left", func() bool { return c.empty(0, 1, 2) })
	if was, err := one.unlock("k", own); was || err != nil {
		t.Errorf("released once more: %v, %v", was, err)
	}
}

func TestToken_OfAnotherClientIsRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.daemon()
	held := one.take("k", long)
	_, err := one.lockAs("k", own, long)
	isHeld(t, err)
	if was, err := one.unlock("k", own); was || err != nil {
		t.Errorf("released with a token that holds nothing: %v, %v", was, err)
	}
	one.free("k", held.Token)
}

// What is not a lock is left alone, whichever client requests it.
func TestToken_ForeignDataIsNoLock(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.daemon()
	for i := range c.servers {
		c.do(i, "HSET", "k", "field", "data")
		c.do(i, "SET", "j", string(own))
	}
	if _, err := one.lockAs("k", own, long); err != ErrWrongType {
		t.Errorf("a hash: %v, want %v", err, ErrWrongType)
	}
	if _, err := one.extend("j", own, long); err != ErrNotHeld {
		t.Errorf("a string that does not expire was extended: %v", err)
	}
	_, err := one.lockAs("j", own, long)
	isHeld(t, err)
	one.refuse("k", time.Second)
	for i := range c.servers {
		if got := c.do(i, "HGET", "k", "field"); got != "data" {
			t.Errorf("master %s: the hash holds %v", name(i), got)
		}
		if got := c.do(i, "PTTL", "j"); got != int64(-1) {
			t.Errorf("master %s: somebody's string expires in %v ms", name(i), got)
		}
	}
}

// A client asks with its token, goes away, and asks again through another daemon
// before the first one has noticed. What the first one gives back must not be
// what the second one counts on.
func TestGiveBack_SparesTheSameTokensRetryThroughAnotherDaemon(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	lost := one.get(LockRequest{Key: "k", Token: tokenA})
	two.get(LockRequest{Key: "k", Token: tokenA})
	one.GiveBack(lost)
	one.settled(0, 1, 2)
	if got := c.stands("k"); got != "token-of-a token-of-a token-of-a" {
		t.Errorf("%s is left of the retry's lock", got)
	}
	one.held(LockRequest{Key: "k", Token: tokenB})

	// Without a retry everything goes.
	one.GiveBack(one.get(LockRequest{Key: "l", Token: tokenA}))
	one.settled(0, 1, 2)
	two.get(LockRequest{Key: "l", Token: tokenB})
}

// The same client with HOLD: the end of its first connection is no release of
// what it holds through the second.
func TestHold_OfAChosenTokenIsNotReleasedByTheEndOfItsConnection(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	terms := func() *HoldTerms { return &HoldTerms{OnEnd: func(Grant, error, time.Duration) {}} }
	first := one.get(LockRequest{Key: "k", Token: tokenA, Hold: terms()})
	two.get(LockRequest{Key: "k", Token: tokenA, Hold: terms()})
	one.holds.Of(&first).End()
	one.settled(0, 1, 2)
	one.held(LockRequest{Key: "k", Token: tokenB})
	generated := one.get(LockRequest{Key: "l", Hold: terms()})
	one.holds.Of(&generated).End()
	one.settled(0, 1, 2)
	two.get(LockRequest{Key: "l"})
}
