package redlock

// permits_test.go: at most n holders of a key.

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestPermits_AreGivenUntilThereAreNoMore(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	daemons := []*daemon{c.daemon(), c.daemon()}
	const n = 5
	var tokens []Token
	last := Fence(0)
	for i := range n {
		g := daemons[i%2].get(LockRequest{Key: "k", Mode: PermitsOf(n)})
		if g.Fence <= last || !g.Fresh {
			t.Errorf("permit %d: %+v after fence %d", i+1, g, last)
		}
		tokens, last = append(tokens, g.Token), g.Fence
	}
	for i := range 2 * n {
		daemons[i%2].held(LockRequest{Key: "k", Mode: PermitsOf(n)})
	}
	daemons[1].free("k", tokens[0]) // through any daemon
	daemons[0].get(LockRequest{Key: "k", Mode: PermitsOf(n), Token: tokenA})
	daemons[1].held(LockRequest{Key: "k", Mode: PermitsOf(n)})
	for _, token := range append(tokens[1:], tokenA) {
		daemons[0].free("k", token)
	}
	if !c.empty(0, 1, 2) {
		t.Errorf("left behind: %s", c.stands("k"))
	}
}

func TestPermits_TheLastFreeOneOfManyIsFoundInAFewRounds(t *testing.T) {
	c := newCluster(t, 3, long)
	d := c.daemon()
	const n = 40
	for i := range n {
		d.get(LockRequest{Key: "k", Mode: PermitsOf(n), Token: Token(fmt.Sprint("holder-nr-", i))})
	}
	for i := range n {
		d.free("k", Token(fmt.Sprint("holder-nr-", i)))
		g := d.get(LockRequest{Key: "k", Mode: PermitsOf(n)})
		d.held(LockRequest{Key: "k", Mode: PermitsOf(n)})
		d.free("k", g.Token)
		d.get(LockRequest{Key: "k", Mode: PermitsOf(n), Token: Token(fmt.Sprint("holder-nr-", i))})
	}
}

func TestPermits_ARepeatOfATokenKeepsItsSlot(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	slot := slotOf(tokenA, 3) // another token stands there first
	var squatter Token
	for i := 0; squatter == ""; i++ {
		if other := Token(fmt.Sprint("squatter-", i)); slotOf(other, 3) == slot {
			squatter = other
		}
	}
	d.get(LockRequest{Key: "k", Mode: PermitsOf(3), Token: squatter})
	first := d.get(LockRequest{Key: "k", Mode: PermitsOf(3), Token: tokenA})
	d.free("k", squatter) // its first choice is free now, and it has another
	before := c.stands("k")
	again := d.get(LockRequest{Key: "k", Mode: PermitsOf(3), Token: tokenA})
	d.settled(0, 1, 2)
	if again.Fresh || again.Fence <= first.Fence || c.stands("k") != before {
		t.Errorf("%+v, then %+v; %s, then %s", first, again, before, c.stands("k"))
	}
	for range 2 {
		d.get(LockRequest{Key: "k", Mode: PermitsOf(3)})
	}
	d.held(LockRequest{Key: "k", Mode: PermitsOf(3)})
}

func TestPermits_AnotherLimitIsAnErrorThatNamesBothUntilAllAreFree(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	g := d.get(LockRequest{Key: "k", Mode: PermitsOf(5)})
	for _, token := range []Token{"", tokenA} {
		_, err := d.ask(LockRequest{Key: "k", Mode: PermitsOf(3), Token: token})
		var other *OtherLimit
		if !errors.As(err, &other) || other.Asked != 3 || other.Limit != 5 || !strings.Contains(err.Error(), "'k'") {
			t.Errorf("LIMIT 3 beside LIMIT 5: %v", err)
		}
	}
	d.free("k", g.Token)
	d.get(LockRequest{Key: "k", Mode: PermitsOf(3)})
}

// Two masters of three must say so; one alone may be left from an earlier number.
func TestPermits_OneMasterWithAnotherLimitIsNotTriedAnyFurther(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	d.get(LockRequest{Key: "k", Mode: PermitsOf(5), Token: tokenA})
	c.do(0, "DEL", "k")
	c.do(1, "DEL", "k")
	d.get(LockRequest{Key: "k", Mode: PermitsOf(3), Token: tokenB})
	if got := c.do(2, "HGET", "k", "n"); got != "5" {
		t.Errorf("the number on c became %v", got)
	}
}

// Rule: counted-permits. Every master has two of two permits given, and every
// holder has two of three masters: those who only count would have three holders.
func TestPermits_ThreeMinoritiesOfTwoPermitsAreNotThreeHolders(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	var daemons []*daemon
	for without := range 3 {
		d := c.daemon(relayed)
		d.relays[without].Refuse()
		d.relays[without].Cut()
		d.await(without, "down")
		daemons = append(daemons, d)
	}
	holders := 0
	for _, d := range daemons {
		switch _, err := d.ask(LockRequest{Key: "k", Mode: PermitsOf(2)}); {
		case err == nil:
			holders++
		case !errors.Is(err, ErrHeld):
			var unknown *NoQuorum
			if !errors.As(err, &unknown) {
				t.Error(err)
			}
		}
	}
	if holders > 2 {
		t.Errorf("%d tokens hold 2 permits: %s", holders, c.stands("k"))
	}
	if holders < 2 {
		t.Errorf("%d tokens got a permit of 2", holders)
	}
}

func TestPermits_LastAsLongAsTheirLongestHolder(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	d.get(LockRequest{Key: "k", Mode: PermitsOf(3), Token: tokenA, TTL: 10 * time.Second})
	short := c.ends(0, "k")
	d.get(LockRequest{Key: "k", Mode: PermitsOf(3), Token: tokenB, TTL: 20 * time.Second})
	if c.ends(0, "k") < short+5000 {
		t.Error("the key ends before its longest holder")
	}
	if _, err := d.prolongAll(tokenA, long, "k"); err != nil {
		t.Error(err)
	}
	d.free("k", tokenA)
	if ends := c.ends(0, "k"); ends > short+15_000 {
		t.Errorf("the key outlives its last holder by %d ms", ends-short-10_000)
	}
	eventually(t, "a permit for a moment", func() bool { // on a busy machine a moment may be too short
		_, err := d.ask(LockRequest{Key: "k", Mode: PermitsOf(3), TTL: 20 * time.Millisecond})
		return err == nil
	})
	eventually(t, "the permit that lapsed is given again, twice", func() bool {
		_, one := d.ask(LockRequest{Key: "k", Mode: PermitsOf(3), Token: tokenA})
		_, two := d.ask(LockRequest{Key: "k", Mode: PermitsOf(3), Token: tokenC})
		return one == nil && two == nil
	})
}

func TestPermits_AnExtensionRepairsTheSameSlot(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	d.get(LockRequest{Key: "k", Mode: PermitsOf(9), Token: tokenA})
	d.get(LockRequest{Key: "k", Mode: PermitsOf(9), Token: tokenC})
	before := c.stands("k")
	slot := fmt.Sprint(slotOf(tokenA, 9))
	c.do(1, "HDEL", "k", slot)
	if _, err := d.prolongAll(tokenA, long, "k"); err != nil {
		t.Fatal(err)
	}
	d.settled(0, 1, 2)
	value, _ := c.do(1, "HGET", "k", slot).(string)
	if !strings.HasSuffix(value, " "+string(tokenA)) || len(c.stands("k")) != len(before) {
		t.Errorf("%s became %s", before, c.stands("k"))
	}
}

// A token in one slot on one master and in another on the next has no permit.
func TestExtend_PermitsOfTwoSlotsDoNotAddUp(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	d.get(LockRequest{Key: "k", Mode: PermitsOf(2), Token: tokenA})
	slot := fmt.Sprint(slotOf(tokenA, 2))
	other := map[string]string{"1": "2", "2": "1"}[slot]
	value := c.do(1, "HGET", "k", slot)
	c.do(1, "HSET", "k", other, value)
	c.do(1, "HDEL", "k", slot)
	c.do(2, "DEL", "k")
	if _, err := d.prolongAll(tokenA, long, "k"); err == nil {
		t.Error("extended by two slots of one master each")
	}
}

// The slot that only one master gave is given back there by its number: the next
// one may have been asked for when that master's answer came.
func TestUndo_OfAPermitNamesItsSlot(t *testing.T) {
	c := newCluster(t, 3, long)
	p := new(tap)
	d := c.daemon(p.tapped)
	slot := slotOf(tokenA, 2)
	ends := time.Now().Add(long).UnixMilli()
	for _, i := range []int{1, 2} {
		c.do(i, "HSET", "k", "n", 2, slot, fmt.Sprint(ends, " another-token"))
		c.do(i, "PEXPIREAT", "k", ends)
	}
	d.get(LockRequest{Key: "k", Mode: PermitsOf(2), Token: tokenA})
	d.settled(0, 1, 2)
	var lines []string
	for _, flush := range p.to("a") {
		for _, line := range flush {
			if strings.HasPrefix(line, "EVALSHA "+d.engine.Scripts.Release) {
				lines = append(lines, line)
			}
		}
	}
	if len(lines) != 1 || !strings.HasSuffix(lines[0], fmt.Sprint(" ", slot)) {
		t.Errorf("taken back by %q, want slot %d by its number", lines, slot)
	}
}
