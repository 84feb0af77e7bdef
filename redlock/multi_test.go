package redlock

// multi_test.go: several keys, all or none.

import (
	"errors"
	"strings"
	"testing"
	"time"

	"redlockd/pool/faulty"
)

func TestMulti_TakesAllKeysOrNone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	g := one.get(LockRequest{Key: "b", More: []Key{"c", "a"}})
	for _, key := range []Key{"a", "b", "c"} {
		two.held(LockRequest{Key: key})
		two.held(LockRequest{Key: key, Mode: Readers})
		two.held(LockRequest{Key: "x", More: []Key{"y", key}})
	}
	if got := c.stands("x") + c.stands("y"); strings.Trim(got, "- ") != "" {
		t.Errorf("a refused set left %s", got)
	}
	for _, key := range []Key{"a", "b", "c"} {
		two.free(key, g.Token)
	}
	next := two.get(LockRequest{Key: "c", More: []Key{"d"}})
	if next.Fence <= g.Fence {
		t.Errorf("fence %d after %d", next.Fence, g.Fence)
	}
}

func TestMulti_ReadersShareEveryKeyAndKeepWritersOutOfEach(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	one.get(LockRequest{Key: "a", More: []Key{"b"}, Mode: Readers, Token: tokenA})
	two.get(LockRequest{Key: "b", More: []Key{"c"}, Mode: Readers, Token: tokenB})
	two.get(LockRequest{Key: "a", Mode: Readers, Token: tokenC})
	for _, key := range []Key{"a", "b", "c"} {
		one.held(LockRequest{Key: key})
		one.held(LockRequest{Key: "x", More: []Key{key}})
	}
	if _, err := one.prolongAll(tokenA, long, "a", "b"); err != nil {
		t.Error(err)
	}
	if _, err := one.prolongAll(tokenA, long, "a", "c"); !errors.Is(err, ErrNotHeld) {
		t.Errorf("extended with a key that it does not hold: %v", err)
	}
	one.free("a", tokenA)
	one.free("b", tokenA)
	one.free("c", tokenB)
	two.get(LockRequest{Key: "c"})
}

func TestMulti_AnExtensionIsForAllKeysOrNone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	d.get(LockRequest{Key: "a", More: []Key{"b"}, Token: tokenA, TTL: 10 * time.Second})
	if g, err := d.prolongAll(tokenA, 25*time.Second, "b", "a"); err != nil || g.Validity() < 15*time.Second {
		t.Errorf("%v, %v", g.Validity(), err)
	}
	d.free("b", tokenA)
	ends := c.ends(0, "a")
	if _, err := d.prolongAll(tokenA, long, "a", "b"); !errors.Is(err, ErrNotHeld) {
		t.Errorf("extended although one key was released: %v", err)
	}
	if now := c.ends(0, "a"); now != ends {
		t.Errorf("the other key's end moved from %d to %d", ends, now)
	}
}

func TestMulti_ARepeatIsTheSameLockAndTakesWhatIsMissing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	first := d.get(LockRequest{Key: "a", More: []Key{"b"}, Token: tokenA})
	again := d.get(LockRequest{Key: "b", More: []Key{"a"}, Token: tokenA})
	if again.Fresh || again.Fence <= first.Fence {
		t.Errorf("%+v, then %+v", first, again)
	}
	wider := d.get(LockRequest{Key: "c", More: []Key{"a", "b"}, Token: tokenA})
	if wider.Fresh || wider.Fence <= again.Fence {
		t.Errorf("%+v, then %+v", again, wider)
	}
}

// Rule: fresh-twice. They are one call of a script, which takes all keys of a request or none.
func TestMulti_OfRequestsInOneFlushThatShareAKeyOneIsGranted(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	p := new(tap)
	d := c.daemon(blind, p.tapped)
	var b Batch
	var answers []chan lockAnswer
	for _, r := range []LockRequest{{Key: "a", More: []Key{"b"}}, {Key: "b", More: []Key{"c"}}, {Key: "c", Fair: true}, {Key: "c", Fair: true}} {
		answer := make(chan lockAnswer, 1)
		answers, r.TTL = append(answers, answer), long
		d.Lock(&b, r, func(g Grant, err error) { answer <- lockAnswer{g, err} })
	}
	b.Send()
	var tokens []string
	for i, answer := range answers {
		a := receive(t, answer)
		if granted := i == 0 || i == 2; granted && a.err != nil || !granted && a.err == nil {
			t.Errorf("request %d of one flush: %v", i, a.err)
		}
		tokens = append(tokens, string(a.grant.Token))
	}
	for _, key := range []Key{"a", "b", "c"} {
		d.refuse(key, long)
	}
	for key, token := range map[string]string{"a": tokens[0], "b": tokens[0], "c": tokens[2]} {
		eventually(t, "a quorum has a copy of "+key, func() bool { return strings.Count(c.stands(key), token) >= 2 })
	}
	all := 0
	for i := range c.servers { // a master that was dialled late did not get the requests
		calls := 0
		for _, flush := range p.to(name(i)) {
			for _, command := range flush {
				if strings.HasPrefix(command, "EVALSHA") && strings.Contains(command, tokens[0]) && strings.Contains(command, tokens[2]) {
					calls++
				}
			}
		}
		if all += calls; calls > 1 || i == 2 && all < 2 {
			t.Errorf("%d calls for the requests of one flush to %s: %q", calls, name(i), p.to(name(i)))
		}
	}
}

// What was the token's before is not undone with an attempt that took more.
func TestUndo_OfSeveralKeysLeavesWhatWasHeldBefore(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon(relayed, blind)
	one.get(LockRequest{Key: "a", Token: tokenA})
	for _, i := range []int{1, 2} {
		two.relays[i].Pause(faulty.ToClient)
	}
	answer := receive(t, two.request(LockRequest{Key: "a", More: []Key{"b"}, Token: tokenA, TTL: long}))
	noQuorum(t, answer.err, "1 of 3")
	for _, i := range []int{1, 2} {
		two.relays[i].Resume()
	}
	two.settled(0, 1, 2)
	if a, b := c.stands("a"), c.stands("b"); a != "token-of-a token-of-a token-of-a" || b != "- - -" {
		t.Errorf("a: %s, b: %s; want the first as it was and nothing of the second", a, b)
	}
}

func TestMulti_AnExtensionRepairsAMasterThatLostAKeyUnlessOneIsReleased(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	for _, mode := range []Mode{nil, Readers} {
		d.get(LockRequest{Key: "a", More: []Key{"b"}, Token: tokenA, Mode: mode})
		before := c.stands("a") + c.stands("b")
		c.do(1, "DEL", "b")
		if _, err := d.prolongAll(tokenA, long, "a", "b"); err != nil {
			t.Fatal(err)
		}
		d.settled(0, 1, 2)
		if got := c.stands("a") + c.stands("b"); got != before {
			t.Errorf("mode %d: %s became %s", mode, before, got)
		}
		d.free("a", tokenA)
		d.free("b", tokenA)
	}
}

func TestMulti_AnUndeliveredGrantIsGivenBackWhole(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	d.GiveBack(d.get(LockRequest{Key: "a", More: []Key{"b", "c"}}))
	eventually(t, "nothing is left", func() bool { return c.empty(0, 1, 2) })
}
