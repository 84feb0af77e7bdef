package proxy

// sharequeue_test.go tests that what a connection sends beyond its share waits behind the
// shares of others, and that clients that send less wait for none of it.

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockd/commands"
)

// crowd has a connection with n commands in its row, none of which is started before
// the returned call is answered.
func crowd(t *testing.T, s *Server, d *dispatcher, n int, lines string) *commands.Call {
	t.Helper()
	c := dial(t, s)
	c.send("LATERBARRIER\r\n")
	first := d.next(t)
	c.send(lines)
	comesTrue(t, "all commands are in the row", func() bool {
		for _, one := range s.snapshot() {
			if &one.client == first.Client {
				one.mu.Lock()
				defer one.mu.Unlock()
				one.shareBegan = time.Time{} // the first command is not part of a share
				return one.waiting == n+1
			}
		}
		return false
	})
	return first
}

func repeated(n int, line string) string { return strings.Repeat(line+"\r\n", n) }

func comesTrue(t *testing.T, what string, true func() bool) {
	t.Helper()
	for end := time.Now().Add(testTimeout); !true(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("it does not come true that %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func queued(s *Server, n int) func() bool {
	return func() bool {
		s.shares.mu.Lock()
		defer s.shares.mu.Unlock()
		waiting := 0
		for _, o := range s.shares.owners {
			waiting += len(o.waiting)
		}
		return waiting == n
	}
}

func TestShareQueue_FurtherSharesTakeTurnsAndDelayNoOtherClient(t *testing.T) {
	d, gate := newDispatcher(), make(chan struct{})
	d.execute = func(c *commands.Call) bool {
		if c.Args[0] != "BLOCK" {
			return false
		}
		<-gate
		c.Reply(commands.OK)
		return true
	}
	s := serve(t, Options{}, d)
	s.shares.mu.Lock()
	s.shares.free = 1
	s.shares.mu.Unlock()

	release := sync.OnceFunc(func() { close(gate) })
	defer release()

	// One connection has the turn, and keeps it in the first command beyond its share.
	crowd(t, s, d, shareCommands+1, repeated(shareCommands, "PING")+"BLOCK\r\n").Reply(commands.OK)
	comesTrue(t, "its second share has begun", func() bool { return slices.Contains(d.started(), "BLOCK") })
	crowd(t, s, d, 3*shareCommands, repeated(3*shareCommands, "ECHO one")).Reply(commands.OK)
	comesTrue(t, "the first flood is queued", queued(s, 1))
	crowd(t, s, d, 2*shareCommands, repeated(2*shareCommands, "ECHO two")).Reply(commands.OK)
	comesTrue(t, "the second flood is queued", queued(s, 2))
	count := func(line string) int {
		return len(slices.DeleteFunc(d.started(), func(one string) bool { return one != line }))
	}
	if one, two := count("ECHO one"), count("ECHO two"); one != shareCommands || two != shareCommands {
		t.Errorf("%d and %d commands were started, want a share of each, %d", one, two, shareCommands)
	}

	// Another connection is served meanwhile, with as much as a share.
	neighbour := dial(t, s)
	neighbour.send(repeated(shareCommands, "ECHO hello"))
	neighbour.expect(strings.Repeat("$5\r\nhello\r\n", shareCommands))

	begun := len(d.started())
	release()
	comesTrue(t, "all is started", func() bool {
		return count("ECHO one") == 3*shareCommands && count("ECHO two") == 2*shareCommands
	})
	var order []string
	for _, line := range d.started()[begun:] {
		if n := len(order); n == 0 || !strings.HasPrefix(order[n-1], line+" ") {
			order = append(order, line+" 1")
		} else {
			var many int
			_, _ = fmt.Sscanf(order[n-1][len(line):], "%d", &many)
			order[n-1] = fmt.Sprint(line, " ", many+1)
		}
	}
	want := []string{fmt.Sprint("ECHO one ", shareCommands), fmt.Sprint("ECHO two ", shareCommands), fmt.Sprint("ECHO one ", shareCommands)}
	if !slices.Equal(order, want) {
		t.Errorf("started in the order %q, want %q", order, want)
	}
}

// Many connections of one client delay another client by one share at a time.
func TestShareQueue_ServesOwnersInTurn(t *testing.T) {
	var r shareQueue
	r.open()
	r.free = 0
	order := make(chan string)
	waiting := func() (n int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, o := range r.owners {
			n += len(o.waiting)
		}
		return n
	}
	owners := []string{"flood", "flood", "flood", "neighbour", "flood", "neighbour"}
	for i, owner := range owners {
		go func() {
			o := r.join(owner)
			defer r.part(o)
			r.enter(o)
			order <- owner
			r.leave(o, 0, 1, 0)
		}()
		comesTrue(t, "it is queued", func() bool { return waiting() == i+1 })
	}
	r.rested()
	var got []string
	for range owners {
		got = append(got, <-order)
	}
	if want := []string{"flood", "neighbour", "flood", "neighbour", "flood", "flood"}; !slices.Equal(got, want) {
		t.Errorf("served %q, want %q", got, want)
	}
	comesTrue(t, "nothing is left", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.free == 1 && len(r.byName) == 0 && len(r.owners) == 0
	})
}

// The commands of a later read wait, too: a flood cannot begin anew with each read.
func TestShareQueue_AConnectionRemainsHeavyForAWhile(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{}, d)
	s.shares.period = time.Hour // a busy machine must not give it a second one
	c := dial(t, s)
	flood, answers := repeated(2*shareCommands, "ECHO one"), strings.Repeat("$3\r\none\r\n", 2*shareCommands)
	c.send(flood)
	c.expect(answers)
	until := func() (t time.Time) {
		for _, one := range s.snapshot() {
			one.mu.Lock()
			t = one.heavyUntil
			one.shareBegan = time.Time{} // a new period
			one.mu.Unlock()
		}
		return t
	}
	if until().IsZero() {
		t.Error("the flood did not make the connection heavy")
	}
	heavy := time.Now().Add(time.Hour) // on a busy machine heavyTime may be over by now
	for _, one := range s.snapshot() {
		one.mu.Lock()
		one.heavyUntil = heavy
		one.mu.Unlock()
	}
	s.shares.mu.Lock()
	s.shares.free = 0 // as if another connection had the turn
	s.shares.mu.Unlock()
	before := len(d.started())
	c.send("ECHO more\r\n")
	comesTrue(t, "one command waits", queued(s, 1))
	if n := len(d.started()); n != before {
		t.Errorf("%d commands were started beside the queue", n-before)
	}
	s.shares.rested()
	c.expect("$4\r\nmore\r\n")
	if now := until(); now != heavy {
		t.Errorf("heavy until %v, %v after a command that is less than a share", heavy, now)
	}
	// After the time it is like any other connection.
	for _, one := range s.snapshot() {
		one.mu.Lock()
		one.heavyUntil = time.Now().Add(-heavyTime)
		one.shareBegan = one.shareBegan.Add(-time.Hour)
		one.mu.Unlock()
	}
	s.shares.mu.Lock()
	s.shares.free = 0
	s.shares.mu.Unlock()
	c.send("ECHO more\r\n")
	c.expect("$4\r\nmore\r\n")
}

// besideLight makes the queue behave as if a connection that is not heavy were at work.
func besideLight(r *shareQueue) { r.lastLight.Store(math.MaxInt64 / 2) }

// Beside other clients a flood has about a share in flight, however many connections it has,
// and more of it starts as the masters answer.
func TestShareQueue_AFloodHasLittleInFlightBesideOtherClients(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{}, d)
	s.shares.period = time.Hour // nothing is too old to count
	const connections, each = 3, 6 * shareCommands
	first := make([]*commands.Call, connections)
	for i := range first {
		first[i] = crowd(t, s, d, each, repeated(each, "LATER"))
	}
	besideLight(&s.shares)
	for _, call := range first {
		call.Reply(commands.OK)
	}
	// Each has a share of its own first; then they wait.
	comesTrue(t, "all connections wait", queued(s, connections))
	inFlight := connections*shareCommands + shareCommands
	for done := 0; done < connections*each; done++ {
		began := len(slices.DeleteFunc(d.started(), func(line string) bool { return line != "LATER" }))
		if most := done + inFlight + maxInFlightBesideLight; began > most {
			t.Fatalf("%d commands were started after %d answers, at most %d may be", began, done, most)
		}
		d.next(t).Reply(commands.OK)
	}
}

// What takes longer than a period, as a wait does, does not count as in flight.
func TestShareQueue_WaitsDoNotStopTheirClient(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{}, d)
	besideLight(&s.shares)
	c := dial(t, s)
	c.send(repeated(4*shareCommands, "LATER"))
	for range 4 * shareCommands { // none of them is answered
		d.next(t)
	}
}

// Alone a flood fills the masters' flushes.
func TestShareQueue_AFloodAloneHasManyCommandsInFlight(t *testing.T) {
	var r shareQueue
	r.open()
	r.period = time.Hour
	o := r.join("flood")
	for n := 0; n < maxInFlight; n += shareCommands {
		r.enter(o)
		r.leave(o, time.Hour, shareCommands, shareCommands)
	}
	if r.mayStartLocked(o, 0) {
		t.Errorf("another turn may start with %d commands in flight", o.inFlight)
	}
	r.answered(o, o.window, shareCommands)
	if !r.mayStartLocked(o, 0) {
		t.Errorf("no turn may start with %d commands in flight", o.inFlight)
	}
	r.part(o)
	if len(r.byName) > 0 {
		t.Errorf("%d owners are left", len(r.byName))
	}
}

// Beside other clients the queue rests after turns of what is answered at once.
func TestShareQueue_RestsBesideOtherClients(t *testing.T) {
	var r shareQueue
	r.open()
	for _, c := range []struct {
		took            time.Duration
		started, atOnce int
		rest, owed      time.Duration
	}{
		{0, 64, 64, 0, restFactor * 64 * commandCost},
		{time.Hour, 8, 0, 0, 0}, // all wait for the masters
		{minRest, 1, 1, restFactor * (minRest + commandCost), 0},
		{8 * minRest, 8, 1, restFactor * (minRest + commandCost), 0},
		{time.Hour, 8, 1, maxRest, 0},
		{time.Hour, 0, 0, 0, 0},
	} {
		besideLight(&r)
		r.owed = 0
		if rest := r.restLocked(0, c.took, c.started, c.atOnce); rest != c.rest || r.owed != c.owed {
			t.Errorf("%+v: a rest of %v, and %v are owed", c, rest, r.owed)
		}
		r.lastLight.Store(-int64(lightTime))
		if rest := r.restLocked(0, c.took, c.started, c.atOnce); rest != 0 || r.owed != 0 {
			t.Errorf("%+v: without other clients a rest of %v, and %v are owed", c, rest, r.owed)
		}
	}
	besideLight(&r)
	r.free = 1
	r.restLocked(0, minRest/restFactor-commandCost-1, 1, 1)
	if rest := r.restLocked(0, 0, 1, 1); rest < minRest || r.owed != 0 {
		t.Errorf("a rest of %v after two short turns, and %v are owed", rest, r.owed)
	}
	o := r.join("flood")
	r.enter(o)
	r.mu.Lock()
	r.leaveLocked(o, time.Hour, 1, 0)
	if r.free != 0 {
		t.Error("the queue does not rest")
	}
	r.mu.Unlock()
	r.enter(o) // returns after the rest
}

// Only clients that are not heavy slow down those that are, and only while they are at work.
func TestShareQueue_NotesTheWorkOfLightConnections(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{}, d)
	s.shares.period = time.Hour // all commands are in one period
	long := -int64(time.Hour)
	beside := func() bool { return s.shares.lastLight.Load() != long }
	heavy, light := dial(t, s), dial(t, s)
	heavy.send(repeated(2*shareCommands, "PING"))
	heavy.expect(strings.Repeat("+PONG\r\n", 2*shareCommands))
	s.shares.lastLight.Store(long)
	heavy.send("PING\r\n")
	heavy.expect("+PONG\r\n")
	if beside() {
		t.Error("the work of a heavy connection is noted")
	}
	light.send("PING\r\n")
	light.expect("+PONG\r\n")
	if !beside() {
		t.Error("the work of a light connection is not noted")
	}
	pipelined := crowd(t, s, d, lightCommands, repeated(lightCommands, "ECHO many"))
	s.shares.lastLight.Store(long)
	pipelined.Reply(commands.OK)
	comesTrue(t, "all commands are started", func() bool {
		return len(slices.DeleteFunc(d.started(), func(line string) bool { return line != "ECHO many" })) == lightCommands
	})
	if beside() {
		t.Error("the work of a connection with many commands at once is noted")
	}
}

// The queue keeps nothing of clients that have gone.
func TestShareQueue_ForgetsClosedConnections(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{}, d)
	owners := func() int {
		s.shares.mu.Lock()
		defer s.shares.mu.Unlock()
		return len(s.shares.byName)
	}
	c := dial(t, s)
	comesTrue(t, "one heavy connection has an owner", func() bool { // on a slow machine not the first time
		c.send(repeated(2*shareCommands, "PING"))
		c.expect(strings.Repeat("+PONG\r\n", 2*shareCommands))
		return owners() == 1
	})
	_ = c.Close()
	comesTrue(t, "the owner is forgotten", func() bool { return owners() == 0 })
}

// One command that is as much work as a share is a share.
func TestShareQueue_WeightCounts(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{}, d)
	besideLight(&s.shares)
	s.shares.period = time.Hour // nothing is too old to count
	first := crowd(t, s, d, 4, repeated(4, "WALK"))
	first.Reply(commands.OK)
	d.next(t) // the connection's own share
	second := d.next(t)
	comesTrue(t, "the third waits for a turn", queued(s, 1))
	second.Reply(commands.OK)
	d.next(t).Reply(commands.OK)
	d.next(t)
}
