package redlock

// script_test.go: locks with a client's own values, on real masters.

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// retake acquires for a client that may hold the keys already.
func (d *daemon) retake(token Token, ttl time.Duration, keys ...Key) (Grant, error) {
	d.t.Helper()
	return d.ask(LockRequest{Key: keys[0], More: keys[1:], TTL: ttl, Token: token, Mode: &Swap{Retakes: &Retake{Held: token}}})
}

// sets gives leases another end, longer or shorter.
func (d *daemon) sets(r ExtendRequest) (g Grant, err error) {
	d.t.Helper()
	r.Exact = true
	answered := make(chan struct{})
	d.Extend(nil, r, func(grant Grant, e error) { g, err = grant, e; close(answered) })
	receive(d.t, answered)
	return g, err
}

// Extensions that stand together in a flush share a call, those that set an end do not.
func TestSets_StandBesideOtherExtensions(t *testing.T) {
	t.Parallel()
	d := newCluster(t, 3, time.Minute).daemon()
	keys := []Key{"k", "l", "m", "n"}
	for _, key := range keys {
		if answer := receive(t, d.request(LockRequest{Key: key, Token: tokenA, TTL: long})); answer.err != nil {
			t.Fatal(answer.err)
		}
	}
	var b Batch
	answers := make(chan error, len(keys)) // each has its one answer
	for i, key := range keys {
		d.Extend(&b, ExtendRequest{Key: key, Token: tokenA, TTL: long, Exact: i%2 == 0}, func(_ Grant, err error) { answers <- err })
	}
	b.Send()
	for range keys {
		if err := receive(t, answers); err != nil {
			t.Error(err)
		}
	}
}

func TestValued_AnEqualValueBelongsToAnotherClient(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, time.Minute)
	d := c.daemon()
	request := LockRequest{Key: "k", Token: "1", TTL: long, Mode: Valued}
	if g, err := d.ask(request); err != nil || g.Fence == 0 {
		t.Fatalf("%v, %v", g, err)
	}
	if _, err := d.ask(request); !errors.Is(err, ErrHeld) {
		t.Errorf("the same value again: %v, want that it is held", err)
	}
	if was, err := d.unlock("k", "1"); !was || err != nil {
		t.Errorf("released: %v, %v", was, err)
	}
	if _, err := d.ask(request); err != nil {
		t.Errorf("after the release: %v", err)
	}
}

func TestValued_WithoutAnExpiryItIsUndoneAndReleasedAllTheSame(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, time.Minute)
	d := c.daemon()
	for _, i := range []int{0, 1} {
		c.do(i, "SET", "k", "somebody else's", "PX", 60000)
	}
	request := LockRequest{Key: "k", Token: "my own value", TTL: Endless, Mode: Valued}
	if _, err := d.ask(request); !errors.Is(err, ErrHeld) {
		t.Fatalf("%v, want that it is held", err)
	}
	eventually(t, "the third master has nothing", func() bool { return c.copies("k")[2] == "" })
	c.do(0, "DEL", "k")
	if _, err := d.ask(request); err != nil {
		t.Fatal(err)
	}
	if ends := c.ends(0, "k"); ends != -1 {
		t.Errorf("ends at %d, want never", ends)
	}
	if was, err := d.unlock("k", "my own value"); !was || err != nil {
		t.Errorf("released: %v, %v", was, err)
	}
	eventually(t, "it is gone", func() bool { return c.copies("k")[2] == "" })
}

// takeEach acquires keys with a value each, all or none.
func (d *daemon) takeEach(keys ...Key) (Grant, error) {
	d.t.Helper()
	r := LockRequest{Key: keys[0], More: keys[1:], TTL: 20 * time.Second}
	swap := &Swap{}
	for _, key := range keys {
		swap.Tokens = append(swap.Tokens, "token-of-"+Token(key))
	}
	r.Token, r.Mode = swap.Tokens[0], swap
	return d.ask(r)
}

func TestTokens_TakesBackWhatAMinorityGave(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, time.Minute)
	d := c.daemon()
	for i := range 3 {
		c.do(i, "SET", "a", "somebody else's", "PX", 60000)
	}
	if _, err := d.takeEach("a", "b"); !errors.Is(err, ErrHeld) {
		t.Fatalf("%v, want that it is held", err)
	}
	eventually(t, "nothing of the attempt is left", func() bool {
		return slices.Equal(c.copies("a")[3:], []string{"", ""}) && strings.Join(c.copies("b"), "") == ""
	})
}

// A retake found the token on one master: whatever becomes of the attempt, that copy was not
// made by it.
func TestRetakes_LeavesWhatTheTokenHeldBefore(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, time.Minute)
	d := c.daemon()
	c.do(0, "SET", "k", "token-of-mine", "PX", 60000)
	for i := 1; i < 4; i++ {
		c.do(i, "SET", "k", "somebody else's", "PX", 60000)
	}
	if _, err := d.retake("token-of-mine", 20*time.Second, "k"); !errors.Is(err, ErrHeld) {
		t.Fatalf("%v, want that it is held", err)
	}
	eventually(t, "the copy that the attempt made is gone", func() bool { return c.copies("k")[4] == "" })
	if got := c.copies("k")[0]; got != "token-of-mine" {
		t.Errorf("the first master holds %q", got)
	}
	for i := range 5 {
		c.do(i, "DEL", "k")
	}
	d.takeAs("k", "token-of-mine", 20*time.Second)
	if g, err := d.retake("token-of-mine", 20*time.Second, "k"); err != nil || g.Fresh {
		t.Errorf("%+v, %v; want a grant that is not fresh: the token had it before", g, err)
	}
}

// Of two keys the token held one on a master: the attempt made the other alone.
func TestRetakes_TakesBackOnlyTheKeysThatItMade(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, time.Minute)
	d := c.daemon()
	for i := range 3 {
		c.do(i, "SET", "a", "somebody else's", "PX", 60000)
	}
	c.do(3, "SET", "a", "token-of-mine", "PX", 60000)
	if _, err := d.retake("token-of-mine", 20*time.Second, "a", "b"); !errors.Is(err, ErrHeld) {
		t.Fatalf("%v, want that it is held", err)
	}
	eventually(t, "what the attempt made is gone", func() bool { return strings.Join(c.copies("b"), "")+c.copies("a")[4] == "" })
	d.idle()
	if got := c.copyAt(3, "a"); got != "token-of-mine" {
		t.Errorf("the fourth master holds %q", got)
	}
}

// A former value of the caller's makes room for the next one in one step, and nobody else's does. A part
// of it is enough if the caller says how much.
func TestRetakes_ReplacesAFormerValue(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, time.Minute)
	d := c.daemon()
	d.takeAs("k", "the-former-token", 20*time.Second)
	ask := func(held Token, bytes int, next Token) (Grant, error) {
		return d.ask(LockRequest{Key: "k", TTL: 20 * time.Second, Token: next, Mode: &Swap{Retakes: &Retake{Held: held, Bytes: bytes}}})
	}
	if _, err := ask("another-former-token", 0, "next-token"); !errors.Is(err, ErrHeld) {
		t.Errorf("of another: %v", err)
	}
	if g, err := ask("the-former-token", 0, "next-token: 1"); err != nil || g.Fresh || g.Fence == 0 {
		t.Fatalf("%+v, %v", g, err)
	}
	if was, err := d.unlock("k", "the-former-token"); was || err != nil {
		t.Errorf("the former token releases: %v, %v", was, err)
	}
	if _, err := ask("next-thing", 10, "next-token: 2"); !errors.Is(err, ErrHeld) {
		t.Errorf("by another beginning: %v", err)
	}
	if _, err := ask("next-token: x", 10, "next-token: 2"); err != nil {
		t.Errorf("by its beginning: %v", err)
	}
	eventually(t, "all masters have the last value", func() bool {
		return slices.Equal(c.copies("k"), []string{"next-token: 2", "next-token: 2", "next-token: 2"})
	})
	if was, err := d.unlock("k", "next-token: 2"); !was || err != nil {
		t.Errorf("released: %v, %v", was, err)
	}
}

// Each key may have a token of its own. Each is then held, taken back, released and given back by
// that one.
func TestTokens_GivesEachKeyItsOwn(t *testing.T) {
	c := newCluster(t, 5, time.Minute)
	d := c.daemon()
	each := func() (Grant, error) { return d.takeEach("c", "a", "b") }
	for i := range 3 {
		c.do(i, "SET", "b", "somebody else's", "PX", 60000)
	}
	if _, err := each(); !errors.Is(err, ErrHeld) {
		t.Fatalf("%v, want that it is held", err)
	}
	none := func(keys ...string) func() bool {
		return func() bool {
			all := ""
			for _, key := range keys {
				all += strings.Join(c.copies(key), "")
			}
			return all == ""
		}
	}
	eventually(t, "nothing of the attempt is left", func() bool { return none("a", "c")() && slices.Equal(c.copies("b")[3:], []string{"", ""}) })
	for i := range 3 {
		c.do(i, "DEL", "b")
	}
	g, err := each()
	if err != nil || !g.Fresh {
		t.Fatalf("%+v, %v", g, err)
	}
	for i, key := range g.Keys() {
		if want := Token("token-of-" + string(key)); g.TokenOf(i) != want {
			t.Errorf("%s is held by %s, want %s", key, g.TokenOf(i), want)
		}
		eventually(t, "all masters have "+string(key), func() bool { return !slices.Contains(c.copies(string(key)), "") })
	}
	if was, err := d.unlock("a", "token-of-c"); was || err != nil {
		t.Errorf("by another key's token: %v, %v", was, err)
	}
	if was, err := d.unlock("a", "token-of-a"); !was || err != nil {
		t.Errorf("by its own: %v, %v", was, err)
	}
	d.GiveBack(g)
	eventually(t, "the others are given back", none("b", "c"))
	if _, err := each(); err != nil {
		t.Errorf("once more: %v", err)
	}
}

func TestSets_RepairsWhereACopyIsLost(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, time.Minute)
	d := c.daemon()
	d.takeAs("k", "token-of-mine", 20*time.Second)
	eventually(t, "all have it", func() bool { return !slices.Contains(c.copies("k"), "") })
	c.do(0, "DEL", "k")
	r := ExtendRequest{Key: "k", Token: "token-of-mine", TTL: 40 * time.Second}
	if g, err := d.sets(r); err != nil || g.Validity() < 30*time.Second {
		t.Fatalf("%+v, %v", g, err)
	}
	eventually(t, "the first master has it again", func() bool { return c.copies("k")[0] == "token-of-mine" })
	for i := range 3 {
		c.do(i, "DEL", "k")
	}
	if _, err := d.sets(r); !errors.Is(err, ErrNotHeld) {
		t.Fatalf("%v, want that it is not held", err)
	}
}

func TestSets_ReportsAKeyThatHoldsNoLockOfItsKind(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, time.Minute)
	d := c.daemon()
	d.get(LockRequest{Key: "k", Mode: Readers})
	if _, err := d.sets(ExtendRequest{Key: "k", Token: "token-of-mine", TTL: time.Second}); !errors.Is(err, ErrWrongType) {
		t.Errorf("%v, want that it is no lock of that kind", err)
	}
	if _, err := d.retake("token-of-mine", 20*time.Second, "k"); !errors.Is(err, ErrWrongType) {
		t.Errorf("%v, want that it is no lock of that kind", err)
	}
}

func TestRetakes_WithoutAQuorumTheOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, time.Minute)
	d := c.daemon()
	for _, i := range []int{0, 1} {
		c.servers[i].Kill()
		d.await(i, "down")
	}
	_, err := d.takeEach("k")
	noQuorum(t, err, "1 of 3")
	_, err = d.retake("token-of-mine", 20*time.Second, "l")
	noQuorum(t, err, "1 of 3")
	_, err = d.sets(ExtendRequest{Key: "k", Token: "token-of-mine", TTL: time.Second})
	noQuorum(t, err, "1 of 3")
	eventually(t, "the copies are taken back", func() bool { return c.copyAt(2, "k")+c.copyAt(2, "l") == "" })
}

// copyAt is one master's copy.
func (c *cluster) copyAt(i int, key string) string {
	c.t.Helper()
	token, _ := c.do(i, "GET", key).(string)
	return token
}

// What a client of one Redis does needs no more than what the example gives the daemon's user.
func TestRetakes_MayRunForTheUserOfTheExample(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, time.Minute)
	c.aclUser()
	d := c.daemon(restricted)
	if _, err := d.retake("token-of-mine", 20*time.Second, "k"); err != nil {
		t.Error(err)
	}
	if _, err := d.sets(ExtendRequest{Key: "k", Token: "token-of-mine", TTL: 40 * time.Second}); err != nil {
		t.Error(err)
	}
	if v, err := d.look("k"); err != nil || v.Value != "token-of-mine" {
		t.Errorf("%+v, %v", v, err)
	}
	if was, err := d.write(WriteRequest{Key: "k", Effect: WriteReplaces, Value: "another one", TTL: 20 * time.Second}); !was || err != nil {
		t.Errorf("%v, %v", was, err)
	}
	d.idle()
	for i := range c.servers {
		if said := c.denied(i); said != "" {
			t.Errorf("master %s refused: %s", name(i), said)
		}
	}
}
