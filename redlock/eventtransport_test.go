package redlock

// eventtransport_test.go: events on their way between daemons, on real masters.

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/redlock/events"
)

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
		want = append(want, tale(events.Acquired, g.Fence), tale(events.Released, g.Fence))
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
	crossed := one.take("crossed", long)                        // granted there, given back here
	j.wants(t, "crossed", tale(events.Acquired, crossed.Fence)) // it travels longer than the release
	two.free("crossed", crossed.Token)
	j.wants(t, "crossed", tale(events.Acquired, crossed.Fence), tale(events.Released, crossed.Fence))
	j.wants(t, "k", want...)
	j.has(t, "own", tale(events.Acquired, own.Fence), tale(events.Released, own.Fence))
	if n := two.EventCounts(); n.Missed != 0 || n.Dropped != 0 {
		t.Errorf("%+v", n)
	}
	// Until the masters notice the cut, the connection that it ended counts as another daemon.
	eventually(t, "the listener does not count itself as another daemon", func() bool {
		_, elsewhere := two.engine.Pool.Group(0).Events.Listeners()
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
	j.wants(t, "k", tale(events.Acquired, g.Fence))
	one.engine.Pool.Close()
	j.wants(t, "k", tale(events.Acquired, g.Fence), tale(events.Expired, g.Fence))
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

// The request names no holder, and ends nothing.
func TestEventTransport_ARequestToLetGoReachesListenersOfOtherDaemons(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	j := listen(t, two.Locker)
	c.subscribed(1)
	eventually(t, "the other daemon knows", one.engine.Pool.HasListeners)
	g := one.take("k", long)
	j.wants(t, "k", tale(events.Acquired, g.Fence))
	for range 2 {
		answer := make(chan int, 1)
		one.Revoke(0, "k", "text", func(n int, _ error) { answer <- n })
		if n := receive(t, answer); n != 0 {
			t.Errorf("%d connections are notified, want 0", n)
		}
	}
	one.free("k", g.Token)
	j.wants(t, "k", tale(events.Acquired, g.Fence), tale(events.Wanted, 0), tale(events.Wanted, 0), tale(events.Released, g.Fence))
}
