package redlock

// outage_test.go: a minority of masters may fail in any way without an effect on calls;
// without a majority the answer is "unknown", not "no".

import (
	"errors"
	"testing"
	"time"
)

func TestOutage_OfTwoMastersOfFiveFailsNoCall(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, long)
	one := c.daemon()
	c.servers[0].Kill()
	c.servers[4].Kill()
	held := one.take("k", 10*time.Second)
	isHeld(t, one.refuse("k", long))
	if _, err := one.extend("k", held.Token, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	one.free("k", held.Token)
	eventually(t, "nothing is left", func() bool { return c.empty(1, 2, 3) })
}

func TestOutage_OfThreeMastersOfFiveIsNoQuorumAndLeavesNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, long)
	one := c.daemon()
	for _, i := range []int{1, 2, 4} {
		c.servers[i].Kill()
	}
	for range 2 { // while the connections break, and once they are known to be gone
		_, err := one.lock("k", long)
		unknown := noQuorum(t, err, "2 of 5", "b=", "c=", "e=", "down")
		if unknown.Needed != 3 || len(unknown.Missing) != 3 {
			t.Errorf("needs %d, misses %q; want 3 of each", unknown.Needed, unknown.Missing)
		}
		eventually(t, "the survivors hold nothing", func() bool { return c.empty(0, 3) })
		for _, i := range []int{1, 2, 4} {
			one.await(i, "down")
		}
	}
	_, err := one.extend("k", "never-granted", long)
	noQuorum(t, err, "2 of 5")
	_, err = one.unlock("k", "never-granted")
	noQuorum(t, err, "2 of 5")
}

// Masters that hold the copy have answered, too: the error counts them.
func TestOutage_AnExtensionWithoutAQuorumCountsTheMastersThatAnswered(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, long)
	one := c.daemon()
	held := one.get(LockRequest{Key: "k", TTL: long})
	one.settled(0, 1, 2, 3, 4)
	for _, i := range []int{1, 2, 4} {
		c.servers[i].Kill()
		one.await(i, "down")
	}
	_, err := one.extend("k", held.Token, long)
	noQuorum(t, err, "2 of 5 masters answered", "b=", "c=", "e=", "old validity stands")
}

// The first flush to a stopped master waits for the master timeout, and nothing
// after it: its breaker is open until it is back.
func TestOutage_AStoppedMasterOpensItsBreakerOnceAndFailsNothing(t *testing.T) {
	t.Parallel()
	const pairs = 2000
	c := newCluster(t, 5, long)
	one := c.daemon()
	burst(t, one, pairs, func() { c.servers[2].Stop() })
	one.await(2, "down")
	burst(t, one, pairs, func() {})
	if n := one.engine.Pool.Counters().BreakerOpened; n != 1 {
		t.Errorf("breakers opened %d times, want once", n)
	}
	c.servers[2].Cont()
	one.await(2, "voting")
	eventually(t, "nothing is left anywhere", func() bool { return c.empty(0, 1, 2, 3, 4) })
}

// Masters that stand still together fail no request that they can answer soon after.
func TestOutage_ARequestIsRepeatedWhenAQuorumWasOnlyTooSlow(t *testing.T) {
	t.Parallel()
	token := tokenA
	for name, r := range map[string]LockRequest{
		"plain": {}, "a caller's token": {Token: tokenA}, "a value": {Token: tokenA, Mode: Valued}, "a reader": {Mode: Readers},
		"a permit": {Mode: PermitsOf(1)}, "several keys": {More: []Key{"l"}}, "FAIR": {Fair: true},
		"the first part of a lock over several groups": {Mode: PartOf("")}, "a further part": {Mode: PartOf(token)},
		"a part with a caller's token": {Token: tokenA, Mode: PartOf("")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3, long)
			one := c.daemon(timeout(3 * time.Second)) // the masters have 6 s to return
			for i := range 2 {
				c.servers[i].Stop()
			}
			r.Key, r.TTL = "k", long
			answer := one.request(r)
			for i := range 2 {
				one.await(i, "down")
			}
			for i := range 2 {
				c.servers[i].Cont()
			}
			a := receive(t, answer)
			if a.err != nil {
				t.Fatal(a.err)
			}
			one.settled(0, 1, 2)
			for i := range 2 {
				c.servers[i].Stop()
			}
			extended := make(chan lockAnswer, 1) // 1: its one answer
			one.Extend(nil, ExtendRequest{Key: "k", More: r.More, Token: a.grant.Token, TTL: long}, func(g Grant, err error) { extended <- lockAnswer{g, err} })
			for i := range 2 {
				one.await(i, "down")
			}
			for i := range 2 {
				c.servers[i].Cont()
			}
			if e := receive(t, extended); e.err != nil {
				t.Errorf("extended: %v", e.err)
			}
			for _, key := range append([]Key{"k"}, r.More...) {
				one.free(key, a.grant.Token)
			}
			one.settled(0, 1, 2)
			eventually(t, "nothing is left", func() bool { return c.empty(0, 1, 2) })
		})
	}
}

// It is not repeated for masters that refuse to write, or are gone; and not for ever.
func TestOutage_ARequestIsNotRepeatedForEverWhenAQuorumStandsStill(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.daemon(timeout(impatient))
	for i := range 2 {
		c.servers[i].Stop()
	}
	_, err := one.lock("k", long)
	noQuorum(t, err, "1 of 3 masters answered", "down (")
	for i := range 2 {
		c.servers[i].Cont()
	}
	one.settled(0, 1, 2)
	eventually(t, "nothing is left", func() bool { return c.empty(0, 1, 2) })
}

// burst has 16 workers lock and unlock keys, no two the same one at a time;
// something happens after a quarter of them. Any error fails the test.
func burst(t *testing.T, d *daemon, pairs int, amid func()) {
	t.Helper()
	const workers = 16
	work := make(chan int)
	errs := make(chan error, workers) // each worker's one report
	for range workers {
		go func() {
			var first error
			for i := range work {
				if err := pair(d.Locker, key(i), long); err != nil && first == nil {
					first = err
				}
			}
			errs <- first
		}()
	}
	for i := range pairs {
		if i == pairs/4 {
			amid()
		}
		work <- i
	}
	close(work)
	for range workers {
		if err := <-errs; err != nil {
			t.Errorf("under load: %v", err)
		}
	}
}

// pair locks and unlocks.
func pair(l *Locker, key Key, ttl time.Duration) error {
	done := make(chan error, 1)
	l.Lock(nil, LockRequest{Key: key, TTL: ttl}, func(g Grant, err error) {
		if err != nil {
			done <- err
			return
		}
		l.Unlock(nil, UnlockRequest{Key: key, Token: g.Token}, func(was bool, err error) {
			if err == nil && !was {
				err = errors.New("released, but it was not held")
			}
			done <- err
		})
	})
	return <-done
}
