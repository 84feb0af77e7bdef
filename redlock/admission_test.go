package redlock

// admission_test.go: which servers may be a master, and the reasons given for the others.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/faulty"
	"redlockd/pool/setup"
)

// unbound is the trait of a daemon that believes every memory at once: what is
// refused is refused for another reason than age.
func unbound(_ *daemon, o *pool.Options) { o.RestartGuardOff = true }

// keptOut wants a master to be refused for a reason in these words.
func keptOut(t *testing.T, d *daemon, i int, words ...string) {
	t.Helper()
	for _, word := range words {
		eventually(t, fmt.Sprintf("master %s is refused for a reason that says %q", name(i), word), func() bool {
			state, why := d.state(i)
			return state == "refused" && strings.Contains(why, word)
		})
	}
}

// Rule: distinct. One process under two addresses would give two votes.
func TestAdmission_OneServerUnderTwoAddressesIsOneMaster(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	if err := bootstrap(c, false, unbound); err != nil {
		t.Fatal(err)
	}
	c.servers[2] = c.servers[1]
	alias := func(_ *daemon, o *pool.Options) {
		o.Masters[2].Address = strings.Replace(o.Masters[2].Address, "127.0.0.1", "localhost", 1)
	}
	one := c.startDaemon(unbound, alias)
	one.await(0, "voting")
	c.servers[0].Kill()
	one.await(0, "down")
	eventually(t, "one of the two names is refused, and never both serve", func() bool {
		g, err := one.lockAs("k", "token-of-a-caller", 10*time.Second)
		if err == nil {
			t.Fatalf("granted for %v by one server of two", g.Validity())
		}
		return strings.Contains(err.Error(), "1 of 3") && strings.Contains(err.Error(), "is the same server as master")
	})
	err := setup.Bootstrap(t.Context(), c.options(), setup.BootstrapTerms{}, t.Output())
	if err == nil {
		t.Error("a group with one server under two addresses was bootstrapped")
	}
}

// listing has a daemon use some of the masters.
func listing(masters ...int) trait {
	return func(_ *daemon, o *pool.Options) {
		all := o.Masters
		o.Masters = nil
		for _, i := range masters {
			o.Masters = append(o.Masters, all[i])
		}
	}
}

// pinned has a daemon keep its list when the group changes.
func pinned(_ *daemon, o *pool.Options) { o.FollowOff = true }

// Rule: claims. One master that came back empty and one that a change left out would be a
// quorum of the former list.
func TestAdmission_ADaemonThatMissedAChangeGetsNoQuorum(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 4, long)
	former := c.startDaemon(unbound, pinned, listing(0, 1, 2), relayed)
	for i := range 3 {
		former.await(i, "voting")
	}
	o := c.options()
	unbound(nil, &o)
	listing(0, 1, 3)(nil, &o)
	former.leave(0, 1)  // it would see the later configuration there
	c.servers[2].Stop() // what leaves the list, and is not reached, keeps what it carries
	if err := setup.Reconfigure(t.Context(), o, setup.ChangeTerms{Absent: true}, t.Output()); err != nil {
		t.Fatal(err)
	}
	c.servers[2].Cont()
	former.await(2, "voting")
	c.do(1, "FLUSHALL")
	former.relays[1].Accept()
	eventually(t, "the daemon with the former list has looked at b", func() bool {
		state, why := former.state(1)
		return state == "voting" || strings.Contains(why, "is empty, and 1 of 3 masters carry the configuration (c), and 2 must")
	})
	former.idle()
	_, err := former.lockAs("k", "token-of-a-caller", time.Minute)
	present := c.startDaemon(unbound, listing(0, 1, 3))
	present.await(0, "voting")
	present.await(2, "voting")
	g := present.take("k", 10*time.Second)
	if err == nil {
		t.Fatalf("two tokens hold %q: one for %v by {a, d}, and one by {b, c}", "k", g.Validity())
	}
	noQuorum(t, err, "1 of 3")
}

func TestAdmission_AReplicaIsRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	if err := bootstrap(c, false, unbound); err != nil {
		t.Fatal(err)
	}
	replicate(c, 2, 0)
	one := c.startDaemon(unbound)
	keptOut(t, one, 2, "is a slave", "they do not replicate", "REPLICAOF NO ONE")
	one.await(0, "voting")
	one.await(1, "voting")
	one.free("k", one.take("k", 10*time.Second).Token)
}

func TestAdmission_APromotedReplicaIsRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	replicate(c, 2, 0)
	c.do(2, "REPLICAOF", "NO", "ONE")
	one := c.startDaemon(unbound)
	keptOut(t, one, 2, "promoted replica", "restart it empty")
	c.servers[2].RestartEmpty()
	one.await(2, "voting")
}

// A master that is made a replica while it serves loses its vote, and comes back
// as a promoted one.
func TestAdmission_AMasterThatBecomesAReplicaIsRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long, "--repl-diskless-sync-delay", "0")
	one := c.daemon()
	replicate(c, 2, 0)
	keptOut(t, one, 2, "is a slave")
	c.do(2, "REPLICAOF", "NO", "ONE")
	keptOut(t, one, 2, "promoted replica")
}

// replicate makes one master a replica of another and waits for the copy.
func replicate(c *cluster, replica, of int) {
	c.t.Helper()
	c.do(of, "CONFIG", "SET", "repl-diskless-sync-delay", "0")
	host, port, _ := strings.Cut(c.servers[of].Addr(), ":")
	c.do(replica, "REPLICAOF", host, port)
	eventually(c.t, "the replica has caught up", func() bool {
		return strings.Contains(c.do(replica, "INFO", "replication").(string), "master_link_status:up")
	})
}

func TestAdmission_AMasterThatMayEvictIsRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	c.do(2, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	one := c.startDaemon(unbound)
	keptOut(t, one, 2, "maxmemory-policy is allkeys-lru", "CONFIG SET maxmemory-policy noeviction")
	c.do(2, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	one.await(2, "voting")
}

func TestAdmission_ADaemonWithOtherSettingsIsRefusedByEveryMaster(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.daemon()
	for what, differs := range map[string]struct {
		change func(*pool.Options)
		words  string
	}{
		"longest lease": {func(o *pool.Options) { o.MaxTTL = long / 2 }, fmt.Sprintf("max-ttl is %d here and %d there", (long / 2).Milliseconds(), long.Milliseconds())},
		"group":         {func(o *pool.Options) { o.Group = "other" }, "group is other here and default there"},
		"names":         {func(o *pool.Options) { o.Masters[0].Name, o.FollowOff = "z", true }, "the list of masters or key prefixes differs"},
	} {
		t.Run(what, func(t *testing.T) {
			c := &cluster{t: t, servers: c.servers, maxTTL: c.maxTTL}
			other := c.startDaemon(func(_ *daemon, o *pool.Options) { differs.change(o) })
			for i := range c.servers {
				keptOut(t, other, i, "serves daemons with other settings", differs.words)
			}
			_, err := other.lock("k", time.Second)
			noQuorum(t, err, "0 of 3", "other settings")
		})
	}
	one.free("k", one.take("k", 10*time.Second).Token)
}

func TestAdmission_AMasterWithAWrongClockIsRefused(t *testing.T) {
	t.Parallel()
	c := newClockCluster(t, 3, long)
	c.servers[2].Step(2 * time.Second)
	one := c.startDaemon(unbound)
	keptOut(t, one, 2, "ms off the other masters' median", "+2", "500 ms allowed")
	if keys := c.servers[2].Keys(); len(keys) != 0 {
		t.Errorf("a master with a wrong clock was written to: %q", keys)
	}
	c.servers[2].Step(-2 * time.Second)
	one.await(2, "voting")
}

func TestAdmission_AWrongPasswordIsNamed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	if err := bootstrap(c, false, unbound); err != nil {
		t.Fatal(err)
	}
	c.servers[2] = faulty.Start(t, "--requirepass", "right")
	one := c.startDaemon(unbound, func(_ *daemon, o *pool.Options) { o.Masters[2].Password = "wrong" })
	eventually(t, "the reason is known", func() bool {
		state, why := one.state(2)
		return state != "dialing" && state != "voting" && strings.Contains(why, "WRONGPASS")
	})
	if _, why := one.state(2); strings.Contains(why, "wrong") && !strings.Contains(why, "WRONGPASS") {
		t.Errorf("the reason shows the password: %q", why)
	}
	one.await(0, "voting")
	one.await(1, "voting")
	one.free("k", one.take("k", 10*time.Second).Token)
}

func TestAdmission_ForeignDataAtTheSealIsLeftAlone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	if err := bootstrap(c, false, unbound); err != nil {
		t.Fatal(err)
	}
	c.do(1, "SET", "redlockd:seal", "somebody else's")
	c.do(2, "ZADD", "redlockd:seal", 1, "somebody", 2, "else")
	one := c.startDaemon(unbound)
	keptOut(t, one, 1, "redlockd:seal in database 0 holds a string that redlockd did not write", "delete it on this master", "--key-prefix")
	keptOut(t, one, 2, "redlockd:seal in database 0 holds a zset of several members")
	if got := c.do(1, "GET", "redlockd:seal"); got != "somebody else's" {
		t.Errorf("the foreign value is now %v", got)
	}
}

// While it serves, a master whose seal is overwritten shows the same reason, and
// votes again once the data is gone.
func TestAdmission_ASealThatIsOverwrittenWhileItServesIsNamed(t *testing.T) {
	c := newCluster(t, 3, long)
	one := c.daemon(unbound)
	for kind, write := range map[string]string{"string": "SET", "list": "RPUSH"} {
		c.do(1, write, "data", "x")
		c.do(1, "RENAME", "data", "redlockd:seal")
		keptOut(t, one, 1, "the key redlockd:seal in database 0 holds a "+kind+" that redlockd did not write", "delete it on this master", "--key-prefix")
		one.free("k", one.take("k", long).Token)
		c.do(1, "DEL", "redlockd:seal")
		one.await(1, "voting")
	}
}

// Connection ids begin anew with every process: after a restart the predecessor's number
// belongs to another client.
func TestAdmission_EndsItsPredecessorOnTheSameProcessOnly(t *testing.T) {
	c := newCluster(t, 3, long)
	p := new(tap)
	one := c.daemon(relayed, p.tapped)
	kills := func() (n int) {
		for _, flush := range p.to("b") {
			n += count(flush, "CLIENT KILL ID ")
		}
		return n
	}
	admitted := func() int64 { return one.engine.Pool.Counters().Admissions }
	before := admitted()
	one.relays[1].Cut()
	eventually(t, "b is admitted again", func() bool { return admitted() > before })
	if n := kills(); n != 1 {
		t.Errorf("%d predecessors were ended after a cut, want 1", n)
	}
	c.servers[1].Restart()
	one.awaitProcess(1, c.servers[1])
	if n := kills(); n != 1 {
		t.Errorf("%d CLIENT KILL after a restart, want none", n-1)
	}
}
