package redlock

// leftbehind_test.go: daemons that a change of the masters has left behind, beside those that
// follow it.

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/faulty"
)

// contenders are a caller of each daemon. They take one key as often as they can.
type contenders struct {
	t    *testing.T
	stop chan struct{}
	over sync.WaitGroup

	mu      sync.Mutex
	holder  *Grant // nil = none
	granted []int
}

func compete(t *testing.T, daemons ...*daemon) *contenders {
	c := &contenders{t: t, stop: make(chan struct{}), granted: make([]int, len(daemons))}
	for i, d := range daemons {
		c.over.Go(func() { c.call(d, i) })
	}
	return c
}

func (c *contenders) call(d *daemon, i int) {
	for n := 0; ; n++ {
		select {
		case <-c.stop:
			return
		default:
		}
		g, err := d.lockAs("k", Token(fmt.Sprintf("token-of-caller-%d-%d", i, n)), time.Second)
		if err == nil {
			c.got(i, g)
			time.Sleep(2 * time.Millisecond)
			c.gone(g)
			_, _ = d.unlock("k", g.Token)
		}
		time.Sleep(time.Millisecond)
	}
}

func (c *contenders) got(i int, g Grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holder != nil && c.holder.Validity() > 0 && g.Validity() > 0 {
		c.t.Errorf("two tokens hold %q: one for %v, and one for %v", "k", c.holder.Validity(), g.Validity())
	}
	c.holder = &g
	c.granted[i]++
}

func (c *contenders) gone(g Grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holder != nil && c.holder.Token == g.Token {
		c.holder = nil
	}
}

// goesOn waits until a caller has got the key once more.
func (c *contenders) goesOn(i int) {
	c.t.Helper()
	count := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.granted[i]
	}
	from := count()
	eventually(c.t, fmt.Sprintf("caller %d gets the key", i), func() bool { return count() > from })
}

// end returns how often each caller has got the key.
func (c *contenders) end() []int {
	close(c.stop)
	c.over.Wait()
	return c.granted
}

// Rule: claims. Five masters become three, and two leave unreached. A daemon that keeps its five
// masters needs one more. It finds one of the three that comes back empty.
func TestFollow_FiveMastersBecomeThreeBesideADaemonOfTheFive(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, time.Second)
	p := c.operator(3, 4)
	p.bootstrap(0, 1, 2, 3, 4)
	former, now := c.startDaemon(pinned, relayed), c.startDaemon(relayed)
	former.await(4, "voting")
	now.await(4, "voting")
	callers := compete(t, former, now)
	for i := range 2 {
		callers.goesOn(i)
	}
	p.cutOff()
	now.leave(3, 4)
	former.leave(0, 1) // it would see the later configurations there
	p.reconfigure(0, 1, 2, 3)
	p.reconfigure(0, 1, 2)
	now.lists(0, 1, 2)
	now.leave(2)
	c.servers[2].Kill()
	sleepUntil(t, time.Now().Add(2500*time.Millisecond), "the master that is away returns")
	c.servers[2].RestartEmpty()
	former.either(2, "voting", "is empty, and 2 of 5 masters carry the configuration (d, e)")
	for range 20 {
		callers.goesOn(1)
	}
	keptOut(t, former, 2, "is empty, and 2 of 5 masters carry the configuration (d, e)")
	now.relays[2].Accept()
	now.await(2, "voting")
	keptOut(t, former, 2, "other settings")
	t.Logf("the callers got the key %d times", callers.end())
	_, err := former.lock("k", time.Second)
	noQuorum(t, err, "0 of 5", "has a later configuration of group default in force, epoch 3")
}

// A file with the masters of two changes ago.
func TestFollow_ADaemonWhoseFileIsTwoChangesOldFollows(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, time.Second)
	c.bootstrapOf(0, 1, 2)
	c.reconfigure(0, 1, 3)
	c.reconfigure(0, 3, 4)
	var log faulty.Log
	late := c.startDaemon(listing(0, 1, 2), func(_ *daemon, o *pool.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	late.lists(0, 3, 4)
	for i := range 3 {
		late.await(i, "voting")
	}
	late.free("k", late.take("k", time.Second).Token)
	for _, want := range []string{"this daemon was left behind by a change of the group", "the configuration of this daemon is older", "epoch=3", "e=" + c.servers[4].Addr()} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
}

// The limit of the leases becomes longer, and a daemon keeps the shorter one. A power loss leaves
// no trace of the change but in the memory of that daemon. What it began would vote while the
// longer leases run.
func TestFollow_ADaemonOfTheShorterLimitBeginsWithNoBlankGroup(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, time.Second)
	c.bootstrapOf(0, 1, 2)
	former := c.startDaemon()
	former.await(2, "voting")
	c.maxTTL = long
	c.reconfigure(0, 1, 2)
	keptOut(t, former, 0, "left behind: the masters have epoch 2")
	now := c.startDaemon(unbound, relayed)
	for i := range 3 {
		now.await(i, "voting")
	}
	first := now.take("k", long)
	now.leave(0, 1, 2)
	for _, s := range c.servers {
		s.RestartEmpty()
	}
	dials := func() int64 { return former.engine.Pool.Counters().Dials }
	began := func() bool { return c.do(0, "ZCARD", "redlockd:seal") != int64(0) }
	from := dials()
	eventually(t, "the daemon has looked at each master some times", func() bool { return began() || dials() >= from+12 })
	if began() {
		former.await(0, "voting")
		former.await(1, "voting")
	}
	noQuorum(t, alone(former, first, "three masters that forgot it"), "0 of 3", "left behind")
	for _, r := range now.relays {
		r.Accept()
	}
	now.await(2, "voting")
}
