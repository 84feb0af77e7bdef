package redlock

// eventtransport_test.go: events on their way between daemons, real masters included.

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// letter is message number n of a daemon: the release of key n.
func letter(daemon string, n int) string {
	key := fmt.Sprint("key-", n)
	return fmt.Sprintf("1 %s %d\n%d %d %d - 0 %d\n%s", daemon, n, EventReleased, n, 5, len(key), key)
}

// order are the fences of the received events, in order.
func (j *journal) order() (fences []Fence) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.all {
		fences = append(fences, e.Fence)
	}
	return fences
}

func (j *journal) wantsOrder(t *testing.T, want ...Fence) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d events are told", len(want)), func() bool { return len(j.order()) >= len(want) })
	if got := j.order(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("told %v, want %v", got, want)
	}
}

// grantOf is the grant that letter releases, reported by another daemon.
func grantOf(daemon string, n int, tokenHash string) string {
	key := fmt.Sprint("key-", n)
	return fmt.Sprintf("1 %s %d\n%d %d %d %s 60000 %d\n%s", daemon, n, EventAcquired, n, 5, tokenHash, len(key), key)
}

func TestEventTransport_AReleaseWaitsForTheEventOfItsGrant(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	j := listen(t, d.Locker)
	s := d.events.ofDB(0)
	id := lockID{0, "key-7", "a-token-granted-elsewhere"}
	tokenHash := id.token.ShortHash()
	d.events.emit(EventReleased, id, 0, 0)
	s.receive(grantOf("a", 7, tokenHash))
	j.wants(t, "key-7", tale(EventAcquired, 7), tale(EventReleased, 7))
	d.events.extended(id, time.Minute)
	d.events.emit(EventReleased, id, 0, 0)
	j.wants(t, "key-7", tale(EventAcquired, 7), tale(EventReleased, 7), tale(EventReleased, 0)) // granted before anybody listened
	s.receive(grantOf("a", 8, tokenHash))
	d.events.emit(EventReleased, lockID{0, "key-8", id.token}, 0, 0)
	j.wants(t, "key-8", tale(EventAcquired, 8), tale(EventReleased, 8))
}

func TestEventTransport_EveryMessageIsReadOnceAndInOrder(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	j := listen(t, d.Locker)
	s := d.events.ofDB(0)
	for _, n := range []int{7, 7, 8, 7, 10, 9, 10, 8, 9} { // two masters, one of them behind
		s.receive(letter("a", n))
	}
	j.wantsOrder(t, 7, 8, 9, 10)
	s.receive(letter(s.daemon, 11)) // our own, by way of a master
	s.mu.Lock()
	if len(s.senders) != 1 || len(s.senders["a"].held) > 0 {
		t.Errorf("%d messages wait to be read again, daemons %d", len(s.senders["a"].held), len(s.senders))
	}
	s.mu.Unlock()
	s.receive(letter("b", 3)) // another daemon's numbers are its own
	j.wantsOrder(t, 7, 8, 9, 10, 3)
	if n := d.EventCounts(); n.Received != 5 || n.Missed != 0 {
		t.Errorf("%+v", n)
	}
}

func TestEventTransport_AMessageThatDoesNotComeIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	j := listen(t, d.Locker)
	s := d.events.ofDB(0)
	for _, n := range []int{1, 4, 6} {
		s.receive(letter("a", n))
	}
	j.wantsOrder(t, 1, 4, 6)
	s.receive(letter("a", 5)) // too late
	s.receive(letter("a", 7))
	j.wantsOrder(t, 1, 4, 6, 7)
	if n := d.EventCounts(); n.Received != 4 || n.Missed != 3 {
		t.Errorf("%+v", n)
	}
}

func TestEventTransport_WhatWaitsIsBounded(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	listen(t, d.Locker)
	s := d.events.ofDB(0)
	s.receive(letter("a", 1))
	for n := 3; n < 3+2*maxHeldBatches; n++ { // number 2 never comes
		s.receive(letter("a", n))
	}
	for n := range 2 * maxEventSenders {
		s.receive(letter(fmt.Sprint("daemon-", n), 1))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if held, senders := len(s.senders["a"].held), len(s.senders); held > maxHeldBatches || senders > maxEventSenders {
		t.Errorf("%d messages of %d daemons wait", held, senders)
	}
}

func TestEventTransport_WhatIsMalformedIsNotRead(t *testing.T) {
	for _, body := range []string{
		"", "x", "2 1 5 - 0 3\n", "2 1 5 - 0 3\nab", "0 1 5 - 0 1\na", "7 1 5 - 0 1\na", "2 -1 5 - 0 1\na", "2 1 5 -- 0 1\na",
		"2 1 5 ABCDEF01 0 1\na", "2 1 5 - 999999999999 1\na", "2 1 5 - 0 99999999999999999999\na", "2 1 5 - 0 -1\na", "2  1 5 - 0 1\na",
	} {
		if ev, _, ok := parseEvent(body); ok {
			t.Errorf("%q is read as %+v", body, ev)
		}
	}
	for _, message := range []string{"", "1", "1 a", "2 a 1\n", "1  1\n", "1 a -1\n", "1 a x\n", "1 a 1 1\n", "1 " + strings.Repeat("a", 65) + " 1\n"} {
		if _, _, _, ok := parseBatch(message); ok {
			t.Errorf("%q is read", message)
		}
	}
}

func FuzzPost_ReadsNothingThatItWouldNotWrite(f *testing.F) {
	f.Add(letter("a", 1))
	f.Add("1 a 1\n1 5 6 0123abcd 7 0\n2 5 6 - 0 1\n\n")
	f.Fuzz(func(t *testing.T, message string) {
		_, _, body, ok := parseBatch(message)
		for ok && len(body) > 0 {
			var ev Event
			before := len(body)
			if ev, body, ok = parseEvent(body); ok && (len(body) >= before || len(ev.Text()) > 96) {
				t.Errorf("%q of %q", ev.Text(), message)
			}
		}
	})
}

// Events of another daemon come once, by whichever masters are there.
func TestEventTransport_EventsOfAnotherDaemonComeOnceWhileAMasterIsLost(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon(relayed)
	j := listen(t, two.Locker)
	c.subscribed(1)
	eventually(t, "the other daemon knows", one.engine.Pool.HasListeners)
	own := two.take("own", long)
	two.free("own", own.Token)

	var want []string
	pair := func() {
		g := one.take("k", long)
		if _, err := one.extend("k", g.Token, long); err != nil {
			t.Fatal(err)
		}
		one.free("k", g.Token)
		want = append(want, tale(EventAcquired, g.Fence), tale(EventReleased, g.Fence))
	}
	for range 5 {
		pair()
	}
	c.servers[0].Kill() // for both daemons
	one.await(0, "down")
	for range 5 {
		pair()
	}
	admitted := two.engine.Pool.Counters().Admissions
	two.relays[1].Cut() // and one more is out of the listener's sight for a while
	for range 5 {
		pair()
	}
	eventually(t, "the listener is back", func() bool { return two.engine.Pool.Counters().Admissions > admitted })
	two.await(1, "voting")
	crossed := one.take("crossed", long)                      // granted there, given back here
	j.wants(t, "crossed", tale(EventAcquired, crossed.Fence)) // it travels longer than the release
	two.free("crossed", crossed.Token)
	j.wants(t, "crossed", tale(EventAcquired, crossed.Fence), tale(EventReleased, crossed.Fence))
	j.wants(t, "k", want...)
	j.has(t, "own", tale(EventAcquired, own.Fence), tale(EventReleased, own.Fence))
	if n := two.EventCounts(); n.Missed != 0 || n.Dropped != 0 {
		t.Errorf("%+v", n)
	}
	// Until the masters notice the cut, the connection that it ended counts as another daemon.
	eventually(t, "the listener does not count itself as another daemon", func() bool {
		_, elsewhere := two.engine.Pool.Group(0).Listeners()
		return !elsewhere
	})
	two.engine.Pool.Close()
	eventually(t, "the other daemon finds that there are no listeners", func() bool { return !one.engine.Pool.HasListeners() })
}

// subscribed waits until so many daemons listen on every master.
func (c *cluster) subscribed(n int64) {
	c.t.Helper()
	for i := range c.servers {
		eventually(c.t, fmt.Sprintf("%d daemons listen on master %s", n, name(i)), func() bool {
			answer, _ := c.do(i, "PUBSUB", "NUMSUB", "redlockd:events:0").([]any)
			return len(answer) == 2 && answer[1] == n
		})
	}
}

func TestEventTransport_ALeaseOfADaemonThatHasDiedExpires(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	j := listen(t, two.Locker)
	eventually(t, "the other daemon knows", one.engine.Pool.HasListeners)
	g := one.take("k", 2*time.Second)
	j.wants(t, "k", tale(EventAcquired, g.Fence))
	one.engine.Pool.Close()
	j.wants(t, "k", tale(EventAcquired, g.Fence), tale(EventExpired, g.Fence))
}

func TestEventTransport_NothingIsPublishedWithoutListeners(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	count := func(commands ...string) (masters int) {
		for i := range c.servers {
			stats, _ := c.do(i, "INFO", "commandstats").(string)
			if slices.ContainsFunc(commands, func(name string) bool { return strings.Contains(stats, "cmdstat_"+name+":") }) {
				masters++
			}
		}
		return masters
	}
	// The latter is what Redis 6.2 calls it.
	eventually(t, "every master is asked who listens", func() bool { return count("pubsub|numsub", "pubsub") == 3 })
	d.free("k", d.take("k", long).Token)
	d.idle()
	if n := count("publish"); n != 0 || d.engine.Pool.HasListeners() {
		t.Errorf("%d masters were told of events that nobody listens to", n)
	}
	listen(t, c.daemon().Locker)
	eventually(t, "the daemon knows that another one listens", d.engine.Pool.HasListeners)
	d.free("k", d.take("k", long).Token)
	eventually(t, "all masters are told", func() bool { return count("publish") == 3 })
}
