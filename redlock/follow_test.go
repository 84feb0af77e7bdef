package redlock

// follow_test.go: the masters of a group change while its daemons serve. The figures of the changes:
//
//	go test -run TestFollow_ -count=1 -v ./redlock | grep ' without '

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/setup"
)

// optionsFor are those of a daemon that lists some of the masters.
func (c *cluster) optionsFor(masters ...int) pool.Options {
	o := c.options()
	listing(masters...)(nil, &o)
	return o
}

func (c *cluster) reconfigure(masters ...int) {
	c.t.Helper()
	if err := setup.Reconfigure(c.t.Context(), c.optionsFor(masters...), setup.ChangeTerms{Absent: true}, c.t.Output()); err != nil {
		c.t.Fatal(err)
	}
}

// bootstrapOf makes some of the masters a group that votes at once.
func (c *cluster) bootstrapOf(masters ...int) {
	c.t.Helper()
	c.born = true
	if err := setup.Bootstrap(c.t.Context(), c.optionsFor(masters...), setup.BootstrapTerms{Force: len(masters)%2 == 0}, c.t.Output()); err != nil {
		c.t.Fatal(err)
	}
}

// lists waits until the daemon uses these masters, in whatever order.
func (d *daemon) lists(masters ...int) {
	d.t.Helper()
	eventually(d.t, fmt.Sprintf("the daemon lists the masters %v", masters), func() bool {
		all := d.Masters(0)
		for _, i := range masters {
			found := false
			for _, m := range all {
				found = found || m.Name == name(i)
			}
			if !found {
				return false
			}
		}
		return len(all) == len(masters)
	})
}

// pairLoad is pairs of locks and releases on keys of their own, one caller a daemon. While the
// masters change, a daemon has no quorum for a moment, for a lock or for a release.
type pairLoad struct {
	stop    atomic.Bool
	over    sync.WaitGroup
	granted []atomic.Int64
	last    []atomic.Int64 // when each daemon granted last, ns since the beginning
	longest atomic.Int64   // of the times between two grants of a daemon, since the last report
	began   time.Time
	failed  atomic.Int64
}

// grants counts a grant of a daemon.
func (l *pairLoad) grants(i int) {
	l.granted[i].Add(1)
	now := time.Since(l.began).Nanoseconds()
	for gap, longest := now-l.last[i].Swap(now), l.longest.Load(); gap > longest && !l.longest.CompareAndSwap(longest, gap); {
		longest = l.longest.Load()
	}
}

// report shows the longest time since the last report in which a daemon granted nothing.
func (l *pairLoad) report(t *testing.T, change string) {
	t.Helper()
	t.Logf("%s: %v without a grant by one of %d daemons", change, time.Duration(l.longest.Swap(0)).Round(time.Millisecond), len(l.granted))
}

func startLoad(daemons []*daemon) *pairLoad {
	l := &pairLoad{granted: make([]atomic.Int64, len(daemons)), last: make([]atomic.Int64, len(daemons)), began: time.Now()}
	for i, d := range daemons {
		l.over.Go(func() {
			key := Key(fmt.Sprint("load-", i))
			for n := 0; !l.stop.Load(); n++ {
				token := Token(fmt.Sprintf("token-of-caller-%d-%d", i, n))
				if _, err := d.lockAs(key, token, time.Second); err != nil {
					l.failed.Add(1)
					time.Sleep(time.Millisecond)
					continue
				}
				l.grants(i)
				if _, err := d.unlock(key, token); err != nil {
					l.failed.Add(1) // the release is repeated until every master has let go
				}
			}
		})
	}
	return l
}

// goesOn waits until each daemon has granted n more.
func (l *pairLoad) goesOn(t *testing.T, n int64) {
	t.Helper()
	for i := range l.granted {
		from := l.granted[i].Load()
		eventually(t, fmt.Sprintf("daemon %d grants", i), func() bool { return l.granted[i].Load() >= from+n })
	}
}

func (l *pairLoad) end() {
	l.stop.Store(true)
	l.over.Wait()
}

func TestFollow_ADeadMasterIsReplacedWhileAllDaemonsServe(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 4, long)
	c.bootstrapOf(0, 1, 2)
	var daemons []*daemon
	for range 3 {
		d := c.startDaemon(listing(0, 1, 2))
		d.await(2, "voting")
		daemons = append(daemons, d)
	}
	lost := make(chan error, 1)
	held := daemons[0].get(LockRequest{Key: "held", TTL: 5 * time.Second, Hold: &HoldTerms{OnEnd: func(_ Grant, reason error, _ time.Duration) { lost <- reason }}})
	l := startLoad(daemons)
	defer l.end()
	l.goesOn(t, 10)
	c.servers[2].Kill()
	l.goesOn(t, 10)
	l.report(t, "a master dies")
	c.reconfigure(0, 1, 3)
	for _, d := range daemons {
		d.lists(0, 1, 3)
	}
	l.goesOn(t, 50)
	l.report(t, "it is replaced")
	late := c.startDaemon(listing(0, 1, 2)) // its file is older than the change
	late.lists(0, 1, 3)
	late.await(0, "voting")
	late.await(1, "voting")
	late.free("x", late.take("x", long).Token)
	isHeld(t, late.refuse("held", long))
	l.end()
	t.Logf("%d locks and releases failed", l.failed.Load())
	select {
	case reason := <-lost:
		t.Errorf("the lock that was held is lost: %v", reason)
	default:
	}
	daemons[0].free("held", held.Token)
}

// A daemon that stood still over the change has no quorum, and follows once it runs again.
func TestFollow_ADaemonThatWasAwayFollowsWhenItIsBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 4, long)
	c.bootstrapOf(0, 1, 2)
	away := c.startDaemon(listing(0, 1, 2), relayed)
	away.await(2, "voting")
	for _, r := range away.relays {
		r.Refuse()
		r.Cut()
	}
	c.reconfigure(0, 1, 3)
	_, err := away.lock("k", time.Second)
	noQuorum(t, err, "0 of 3")
	back := time.Now()
	for _, r := range away.relays {
		r.Accept()
	}
	away.lists(0, 1, 3)
	away.await(0, "voting")
	away.await(1, "voting")
	g := away.take("k", long)
	t.Logf("a daemon that was away grants %v after it is back, without a command", time.Since(back).Round(time.Millisecond))
	away.free("k", g.Token)
}

func TestFollow_ThreeMastersBecomeFiveAndThreeAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("each step rests for the longest lease: make test-long")
	}
	t.Parallel()
	c := newCluster(t, 5, time.Second)
	c.bootstrapOf(0, 1, 2)
	var daemons []*daemon
	for range 3 {
		d := c.startDaemon(listing(0, 1, 2))
		d.await(2, "voting")
		daemons = append(daemons, d)
	}
	l := startLoad(daemons)
	defer l.end()
	for _, list := range [][]int{{0, 1, 2, 3}, {0, 1, 2, 3, 4}, {1, 2, 3, 4}, {2, 3, 4}} {
		l.goesOn(t, 20)
		c.reconfigure(list...)
		for _, d := range daemons {
			d.lists(list...)
			for i := range list {
				d.await(i, "voting")
			}
		}
		l.report(t, fmt.Sprint("now ", len(list), " masters"))
	}
	l.goesOn(t, 20)
	for i := range 2 {
		if left := strings.Join(c.identity(i), " "); !strings.Contains(left, "/epoch=") {
			t.Errorf("master %s carries %q", name(i), left)
		}
	}
}

// bareQuorum takes a key through a daemon that reaches no more than the first three of five.
func bareQuorum(c *cluster, ttl time.Duration) Grant {
	c.t.Helper()
	c.bootstrapOf(0, 1, 2, 3, 4)
	one := c.startDaemon(relayed)
	for i := range 3 {
		one.await(i, "voting")
	}
	for _, r := range one.relays[3:] {
		r.Refuse()
		r.Cut()
	}
	one.await(3, "down")
	one.await(4, "down")
	g := one.take("k", ttl)
	for _, r := range one.relays { // it takes no part in what follows
		r.Refuse()
		r.Cut()
	}
	return g
}

// grantedTwice wants the key to be refused to another daemon while the first lease is valid.
func grantedTwice(c *cluster, first Grant, masters ...int) {
	c.t.Helper()
	two := c.startDaemon(listing(masters...))
	for i := range masters {
		two.await(i, "voting")
	}
	if g, err := two.lockAs("k", "token-of-a-caller", time.Second); err == nil && first.Validity() > 0 {
		c.t.Fatalf("two tokens hold %q: one for %v by {a, b, c}, and one for %v", "k", first.Validity(), g.Validity())
	}
}

// Rule: meet. A quorum of three masters need not meet one of five.
func TestFollow_AChangeWhoseQuorumsNeedNotMeetIsRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, long)
	first := bareQuorum(c, long)
	if err := setup.Reconfigure(t.Context(), c.optionsFor(2, 3, 4), setup.ChangeTerms{Absent: true}, t.Output()); err == nil {
		grantedTwice(c, first, 2, 3, 4)
		t.Fatal("from five masters to three at once")
	}
}

// Rule: change-rest. Over two changes, quorums need not meet either: a lease from before the
// first one must be over.
func TestFollow_AChangeAfterAnotherWaitsForTheLeases(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, 10*time.Second)
	first := bareQuorum(c, 10*time.Second)
	c.reconfigure(1, 2, 3, 4)
	var out strings.Builder
	if err := setup.Reconfigure(t.Context(), c.optionsFor(2, 3, 4), setup.ChangeTerms{Absent: true}, &out); err != nil || !strings.Contains(out.String(), "epoch 2 is too young: waiting") {
		t.Error(err, out.String())
	}
	grantedTwice(c, first, 2, 3, 4)
}

func awaiting(_ *daemon, o *pool.Options) { o.AwaitBootstrap = true }

// A daemon without proof of its configuration may have missed changes: {a,b,c}, {a,b,d},
// {a,d,e}. If a, b and c come back empty, it must not begin beside {d,e}.
func TestEpoch_ADaemonWithoutProofBeginsNoGroupOfBlankMasters(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.startDaemon(awaiting)
	for i, s := range c.servers {
		keptOut(t, one, i, "is empty", "for a new group run redlockd bootstrap", "All masters lost in the runbook")
		if keys := s.Keys(); len(keys) != 0 {
			t.Errorf("%s has %q", name(i), keys)
		}
	}
	if err := bootstrap(c, false); err != nil {
		t.Fatal(err)
	}
	for i := range c.servers {
		one.await(i, "voting")
	}
}

// A daemon that served until just now begins again by itself, and the masters wait for the
// longest lease. Later it has no proof any more.
func TestEpoch_ADaemonBeginsAgainWithinTheLongestLeaseOfItsProof(t *testing.T) {
	t.Parallel()
	for name, passes := range map[string]time.Duration{"at once": 0, "too late": long, "at once, with files": 0, "too late, with files": long} {
		t.Run(name, func(t *testing.T) {
			withFiles := strings.HasSuffix(name, "files")
			c := newCluster(t, 3, long)
			c.bootstrapOf(0, 1, 2)
			one := c.startDaemon(awaiting)
			for i := range c.servers {
				one.await(i, "voting")
			}
			one.take("k", long)
			one.settled(0, 1, 2) // each has answered under a seal
			for i, s := range c.servers {
				c.do(i, "SAVE")
				s.Kill()
			}
			for i := range c.servers {
				one.await(i, "down")
			}
			one.clock.Ahead.Add(int64(passes))
			for _, s := range c.servers {
				if withFiles {
					s.Restart()
				} else {
					s.RestartEmpty()
				}
			}
			for i := range c.servers {
				switch {
				case passes == 0:
					one.await(i, "quarantined")
				case withFiles:
					keptOut(t, one, i, "has come back with what may be an older file", "see All masters lost in the runbook")
				default:
					keptOut(t, one, i, "is empty", "for a new group run redlockd bootstrap")
				}
			}
		})
	}
}

// A record on the masters names an address to which no operator has sent this daemon: whoever can write one on a quorum
// does not get the masters' password. A daemon that may follow there logs in.
func TestFollow_ThePasswordIsSentToNoAddressThatOnlyARecordNames(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 4, long)
	c.bootstrapOf(0, 1, 2)
	c.aclUser()
	c.do(3, "ACL", "DELUSER", "redlockd") // so that its log has each login
	stays := c.startDaemon(restricted, listing(0, 1, 2))
	stays.await(2, "voting")
	c.reconfigure(0, 1, 3)
	eventually(t, "the daemon names the option", func() bool {
		return strings.Contains(stays.Masters(0)[0].Detail, "allow "+c.servers[3].Addr()+" by --follow-to")
	})
	if log := c.denied(3); log != "" {
		t.Fatalf("it has logged in: %s", log)
	}
	host, _, _ := strings.Cut(c.servers[3].Addr(), ":")
	follows := c.startDaemon(restricted, listing(0, 1, 2), func(_ *daemon, o *pool.Options) { o.FollowTo = []string{host + ".*:1", host + ":*"} })
	follows.lists(0, 1, 3)
	eventually(t, "it logs in", func() bool { return strings.Contains(c.denied(3), "redlockd") })
}
