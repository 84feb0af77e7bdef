package redlock

// ids_memory_test.go: a counter counts only in a memory that vouches for it. What a quorum of
// trusted masters does not know is never guessed.

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// shortLived are clusters whose masters vote two seconds after they forgot.
const shortLived = 100 * time.Millisecond

// Rule: trust. c never received the ids that a and b gave, b has forgotten them, and a is away:
// c and b together must not begin again. The directed schedule of what the load tests do at
// random.
func TestIDs_AreNotRepeatedByAMasterThatForgotThem(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, shortLived)
	one := c.daemon(relayed).volatileIDs()
	one.cutOff(2)
	last := one.draw("n", 100) + 99
	c.servers[1].RestartEmpty()
	two := c.startDaemon(relayed).volatileIDs()
	for i := range c.servers {
		two.await(i, "voting")
	}
	two.cutOff(0)
	first, err := two.ids("n", 1)
	if err == nil && first <= last {
		t.Fatalf("id %d was given after id %d, by a master that forgot it and one that never heard of it", first, last)
	}
	noQuorum(t, err) // the truth is out of reach, not lost

	// With a there, b receives an id that it can trust; then it does without a.
	two.reconnect(0, "voting")
	last = two.draw("n", 1)
	eventually(t, "b has received it", func() bool { two.draw("n", 1); return two.counter("n")[1].Trusted })
	last = max(last, two.draw("n", 1))
	two.cutOff(0)
	if got := two.draw("n", 1); got <= last {
		t.Fatalf("id %d after id %d", got, last)
	}
}

// A round that holds the vote of a memory which is gone by now may still
// succeed. What was chosen beside it is no id to trust that master with.
func TestIDs_ChosenBesideARoundOfAnEarlierIncarnationDoNotVouch(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, shortLived)
	slow := timeout(3 * time.Second)
	one := c.daemon(relayed, slow).volatileIDs()
	two := c.daemon(relayed, slow).volatileIDs()

	// Two's proposals lie far above one's.
	for i := 1; i < 3; i++ {
		two.cutOff(i)
	}
	if _, err := two.ids("n", 1000); err == nil {
		t.Fatal("one master gave ids")
	}
	two.reconnect(1, "voting")

	// Two's next round has a's vote, reaches b late and c never.
	two.relays[1].Pause()
	pending := two.requestIDs(IDRequest{Name: "n", Count: 1})
	eventually(t, "a has two's vote", func() bool {
		value, _ := c.do(0, "GET", "redlockd:id:n").(string)
		return strings.HasPrefix(value, "1001@")
	})
	c.servers[0].FlushAll()
	one.await(0, "quarantined")
	if got := one.draw("n", 1); got != 1 {
		t.Fatalf("id %d, want 1: the schedule is broken", got)
	}
	two.relays[1].Resume()
	a := receive(t, pending)
	if a.err != nil {
		t.Logf("two's round was given up: %v", a.err)
		a.first = 1
	}

	// One knows only its own id, and a has voted for nothing since.
	one.await(0, "voting")
	one.cutOff(1)
	got, err := one.ids("n", 1)
	if err == nil && got <= a.first {
		t.Fatalf("id %d was given after id %d, because a trusts an id that was chosen beside it", got, a.first)
	}
	noQuorum(t, err) // what b knows is out of reach, not lost
	one.reconnect(1, "voting")
	if got := one.draw("n", 1); got <= a.first {
		t.Fatalf("id %d was given after id %d", got, a.first)
	}
}

func TestIDs_OfAGroupThatWasNotBootstrappedNeedTheOperatorsWord(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, shortLived)
	c.born = true // nobody bootstraps it
	d := c.daemon().volatileIDs()
	_, err := d.ids("n", 1)
	lostState(t, err, 0)
	if err := d.reseed("n", 5000); err != nil {
		t.Fatal(err)
	}
	if got := d.draw("n", 3); got != 5001 {
		t.Fatalf("id %d after the counter was set to 5000, want 5001", got)
	}
	if err := d.reseed("fresh", 0); err != nil {
		t.Fatal(err)
	}
	if got := d.draw("fresh", 1); got != 1 {
		t.Fatalf("id %d of a counter that begins, want 1", got)
	}
}

func TestIDs_WhoseTruthIsLostContinueAboveWhatTheOperatorSays(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, shortLived)
	one := c.daemon().volatileIDs()
	one.draw("n", 41)
	for _, i := range []int{1, 2} {
		c.servers[i].RestartEmpty()
		one.awaitProcess(i, c.servers[i])
		one.await(i, "voting")
	}
	_, err := one.ids("n", 1)
	lost := lostState(t, err, 1)
	if lost.Highest < 41 {
		t.Errorf("highest known %d, want at least 41", lost.Highest)
	}
	c.do(0, "SET", "redlockd:id:n", "1000@"+c.identity(0)[1]) // as if a alone had heard of later ids
	known := one.counter("n")
	if !known[0].Known || !known[0].Trusted || known[0].Value != 1000 || known[1].Trusted {
		t.Fatalf("the masters know %+v, want a trusted at 1000 and b not", known)
	}
	c.do(2, "SET", "redlockd:id:n", "1500@lost") // untrusted, and yet ids up to there may have been given
	var below *BelowKnown
	if err := one.reseed("n", 999); !errors.As(err, &below) || below.Known != 1500 || below.Master != "c" || !strings.Contains(err.Error(), "at least 1500") {
		t.Fatalf("reseeding below what a and c know: %v, want BelowKnown with the highest value, 1500 on c", err)
	}
	if one.counter("n")[1].Trusted {
		t.Fatal("b was reseeded although a knows of higher ids")
	}
	if err := one.reseed("n", math.MaxInt64/2); err != nil {
		t.Fatal(err)
	}
	for i, m := range one.counter("n") {
		if !m.Known || !m.Trusted || m.Value != math.MaxInt64/2 {
			t.Errorf("master %s knows %+v after the reseeding", name(i), m)
		}
	}
	if got := one.draw("n", 1); got <= math.MaxInt64/2 {
		t.Fatalf("id %d, want one above the operator's word", got)
	}
}

func TestReseed_OnTooFewMastersIsReported(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, shortLived)
	d := c.daemon(relayed).volatileIDs()
	d.cutOff(1)
	d.cutOff(2)
	noQuorum(t, d.reseed("n", 7), "1 of 3", "installed on the masters that answered", "repeat the command")
	d.cutOff(0)
	noQuorum(t, d.reseed("n", 7), "0 of 3", "installed nowhere", "repeat the command")
}

func TestCounters_AreListedByNameOncePerDatabase(t *testing.T) {
	c := newCluster(t, 3, long)
	d := c.daemon().volatileIDs()
	want := []Key{"a*b", "b[c", "orders"}
	for _, n := range want {
		d.draw(n, 1)
	}
	c.do(0, "SET", "redlockd:xid:n", "no counter")
	c.do(1, "SET", "another", "no counter")
	eventually(t, "every counter is listed", func() bool { return slices.Equal(d.counters(0), want) })
	if got := d.counters(1); len(got) != 0 {
		t.Errorf("database 1 lists %q, want nothing", got)
	}
}

func TestIDs_LeaveAloneWhatIsNoCounter(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon().volatileIDs()
	for i := range c.servers {
		c.do(i, "SET", "redlockd:id:n", "hello")
	}
	if got, err := d.ids("n", 1); !errors.Is(err, ErrWrongType) {
		t.Fatalf("id %d, %v, want %v", got, err, ErrWrongType)
	} else if !strings.HasPrefix(err.Error(), "redlockd:id:n holds something that redlockd did not write") {
		t.Errorf("%v does not name the key", err)
	}
	for i := range c.servers {
		if got := c.do(i, "GET", "redlockd:id:n"); got != "hello" {
			t.Errorf("master %s: %v, want it untouched", name(i), got)
		}
	}
	c.do(0, "DEL", "redlockd:id:n")
	c.do(1, "DEL", "redlockd:id:n")
	if got := d.draw("n", 1); got < 1 {
		t.Errorf("id %d", got)
	}
	if got := c.do(2, "GET", "redlockd:id:n"); got != "hello" {
		t.Errorf("the third master: %v, want it untouched", got)
	}
}

func TestReadCounter_OfTooFewMastersIsNoQuorum(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon(relayed).volatileIDs()
	d.draw("n", 41)
	read := func() (Counter, error) {
		type answer struct {
			counter Counter
			err     error
		}
		answers := make(chan answer, 1) // its one answer
		d.ReadCounter(0, "n", func(c Counter, err error) { answers <- answer{c, err} })
		a := receive(t, answers)
		return a.counter, a.err
	}
	d.cutOff(2)
	if counter, err := read(); err != nil || len(counter.Masters) != 3 || !counter.Masters[0].Known || counter.Masters[2].Known {
		t.Errorf("with two of three masters: %+v, %v", counter, err)
	}
	for i, want := range []string{"1 of 3", "0 of 3"} {
		d.cutOff(i)
		_, err := read()
		noQuorum(t, err, want)
	}
}
