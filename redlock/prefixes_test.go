package redlock

// prefixes_test.go: a group that serves several key prefixes.

import (
	"slices"
	"testing"

	"redlockd/pool"
	"redlockd/pool/setup"
)

// serving has the daemon serve one key prefix; all are those of the group, none if it does not list them.
func serving(own string, all ...string) trait {
	return func(_ *daemon, o *pool.Options) { o.KeyPrefix, o.Prefixes = own, all }
}

// asOperator runs an operator's command with the settings of such a daemon.
func (c *cluster) asOperator(command func(pool.Options) error, is trait) {
	c.t.Helper()
	o := c.options()
	is(nil, &o)
	if err := command(o); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) bootstrapAs(is trait) {
	c.t.Helper()
	c.asOperator(func(o pool.Options) error {
		return setup.Bootstrap(c.t.Context(), o, setup.BootstrapTerms{}, c.t.Output())
	}, is)
	c.born = true
}

func (c *cluster) reconfigureAs(is trait) {
	c.t.Helper()
	c.asOperator(func(o pool.Options) error {
		return setup.Reconfigure(c.t.Context(), o, setup.ChangeTerms{Absent: true}, c.t.Output())
	}, is)
}

func TestPrefixes_OneGroupServesSeveral(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	c.bootstrapAs(serving("orders:", "orders:", "jobs:"))
	orders, jobs := c.startDaemon(serving("orders:", "orders:", "jobs:")).admitted(), c.startDaemon(serving("jobs:", "orders:", "jobs:")).admitted()
	again := c.startDaemon(serving("jobs:", "orders:", "jobs:")).admitted()
	first := orders.take("k", long)
	var last Grant
	for _, d := range []*daemon{jobs, again, jobs, again} { // each prefix has its own lock, and fences rise over all
		g := d.take("k", long)
		if g.Fence <= max(first.Fence, last.Fence) {
			t.Errorf("fence %d after %d and %d", g.Fence, first.Fence, last.Fence)
		}
		isHeld(t, jobs.refuse("k", long))
		isHeld(t, again.refuse("k", long))
		d.free("k", g.Token)
		last = g
	}
	isHeld(t, orders.refuse("k", long))
	for i, s := range c.servers {
		if keys := s.Keys(); !slices.Contains(keys, "orders:redlockd:seal") || slices.Contains(keys, "jobs:redlockd:seal") {
			t.Errorf("master %s has %q", name(i), keys)
		}
	}
}

func TestPrefixes_OneJoinsAndLeavesWhileTheDaemonsServe(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	c.bootstrapAs(serving("orders:"))
	old := c.startDaemon(serving("orders:")).admitted()
	l := startLoad([]*daemon{old})
	defer l.end()
	l.goesOn(t, 10)
	held := old.take("k", long)
	for _, d := range []*daemon{c.startDaemon(serving("jobs:")), c.startDaemon(serving("jobs:", "orders:", "jobs:"))} {
		for i := range c.servers {
			keptOut(t, d, i, "jobs:")
		}
	}
	c.reconfigureAs(serving("orders:", "orders:", "jobs:"))
	l.goesOn(t, 50)
	jobs := c.startDaemon(serving("jobs:", "orders:", "jobs:")).admitted()
	jobs.take("k", long)
	restarted := c.startDaemon(serving("orders:")).admitted() // its file is older than the list
	isHeld(t, restarted.refuse("k", long))
	for i := range c.servers {
		keptOut(t, c.startDaemon(serving("jobs:")), i, "give this daemon all of them: --key-prefixes orders:,jobs:")
		keptOut(t, c.startDaemon(serving("jobz:", "orders:", "jobz:")), i, `with the key prefixes ["orders:" "jobs:"], and this daemon's --key-prefix is "jobz:"`)
	}
	c.reconfigureAs(serving("orders:")) // it says nothing of the list
	jobs.await(2, "voting")
	restarted.admitted().free("k", held.Token)
}
