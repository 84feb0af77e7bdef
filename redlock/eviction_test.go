package redlock

// eviction_test.go: an eviction takes locks and leaves the seal. It ends the
// incarnation of its master, although the policy that allowed it is gone.

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
)

// lasting is a lease, and so a quarantine, that no test outlives on a busy machine.
const lasting = 5 * time.Minute

// heldForLong is a plain cluster whose key is held on a and b only.
func heldForLong(t *testing.T, args ...string) (c *cluster, one *daemon, key Key) {
	t.Helper()
	c = newCluster(t, 3, lasting, args...)
	for i := range c.servers { // more commands than follow a reset before the next look
		c.do(i, "EVAL", "for i = 1, 100000 do redis.call('PING') end", 0)
	}
	one = c.daemon(relayed)
	one.cutOff(2)
	held := one.take("k", lasting)
	one.reconnect(2, "voting")
	if got := c.copies("k"); got[0] != string(held.Token) || got[1] != got[0] || got[2] != "" {
		t.Fatalf("copies %q, want them on a and b", got)
	}
	return c, one, "k"
}

// stat is a number of a master's INFO.
func (c *cluster) stat(i int, field string) int64 {
	c.t.Helper()
	_, rest, _ := strings.Cut(c.do(i, "INFO").(string), field+":")
	text, _, _ := strings.Cut(rest, "\r")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		c.t.Fatalf("%s of master %s: %v", field, name(i), err)
	}
	return n
}

// evict has a master evict every key that has a ttl, and undoes the policy.
func (c *cluster) evict(i int) {
	c.t.Helper()
	c.do(i, "SET", "a key that may go", "x", "EX", 1000)
	before := c.stat(i, "evicted_keys")
	c.do(i, "CONFIG", "SET", "maxmemory-policy", "volatile-random")
	c.do(i, "CONFIG", "SET", "maxmemory", 1)
	eventually(c.t, "the master has evicted keys", func() bool {
		return c.stat(i, "evicted_keys") > before && c.do(i, "EXISTS", "k", "a key that may go") == int64(0)
	})
	c.do(i, "CONFIG", "SET", "maxmemory", 0)
	c.do(i, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	if len(c.identity(i)) == 1 {
		c.t.Fatal("the seal was evicted, too")
	}
}

// end stops a daemon: from then on none checks the masters.
func (d *daemon) end() {
	d.t.Helper()
	_ = d.Close(time.Second)
	d.engine.Pool.Close()
}

// startsAnew wants a daemon to find a master in a new incarnation, which began
// after a moment of its clock, and not to count its vote.
func (d *daemon) startsAnew(c *cluster, i int, incarnation string, began int64, key Key) {
	d.t.Helper()
	d.await(i, "quarantined")
	identity := c.identity(i)
	base, err := strconv.ParseInt(identity[2], 10, 64)
	if err != nil || identity[1] == incarnation || base < began {
		d.t.Errorf("the incarnation of master %s is %q, want another than %s that began after %d", name(i), identity, incarnation, began)
	}
	if key != "" {
		d.refuse(key, time.Second)
	}
}

// now is a master's moment, µs.
func (c *cluster) now(i int) int64 {
	c.t.Helper()
	reply := c.do(i, "TIME").([]any)
	text := fmt.Sprintf("%s%06s", reply[0], reply[1])
	n, err := strconv.ParseInt(strings.ReplaceAll(text, " ", "0"), 10, 64)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

func TestEviction_BetweenTwoChecksEndsTheIncarnation(t *testing.T) {
	t.Parallel()
	c, one, key := heldForLong(t)
	incarnation, began := c.incarnation(1), c.now(1)
	c.evict(1)
	one.startsAnew(c, 1, incarnation, began, key)
	if n := one.engine.Pool.Counters().Invalidated; n != 1 {
		t.Errorf("%d incarnations were ended, want 1", n)
	}
	for i, n := range one.engine.Pool.Counters().Void {
		if pool.VoidReason(i) == "evicted" && n == 0 {
			t.Error("no flush was void because of it")
		}
	}
	if state, why := one.state(0); state != "voting" {
		t.Errorf("master a is %s (%s)", state, why)
	}
}

// CONFIG RESETSTAT puts the count back where it was.
func TestEviction_IsNotHiddenByAResetOfTheStatistics(t *testing.T) {
	t.Parallel()
	c, one, key := heldForLong(t)
	incarnation, began := c.incarnation(1), c.now(1)
	c.evict(1)
	c.do(1, "CONFIG", "RESETSTAT")
	if n := c.stat(1, "evicted_keys"); n != 0 {
		t.Fatalf("evicted_keys is %d after the reset", n)
	}
	one.startsAnew(c, 1, incarnation, began, key)
}

func TestEviction_AResetBetweenTwoConnectionsEndsTheIncarnation(t *testing.T) {
	t.Parallel()
	c, one, key := heldForLong(t)
	incarnation, began := c.incarnation(1), c.now(1)
	one.cutOff(1)
	c.evict(1)
	c.do(1, "CONFIG", "RESETSTAT")
	one.reconnect(1, "quarantined")
	one.startsAnew(c, 1, incarnation, began, key)
}

// The policy alone is enough: what it takes would be counted too late.
func TestEviction_APolicyThatWasSeenEndsTheIncarnation(t *testing.T) {
	t.Parallel()
	c, one, key := heldForLong(t)
	incarnation, began := c.incarnation(1), c.now(1)
	c.do(1, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	keptOut(t, one, 1, "maxmemory-policy is allkeys-lru")
	c.do(1, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	one.startsAnew(c, 1, incarnation, began, key)
}

func TestEviction_APolicyThatAFreshDaemonFindsEndsTheIncarnation(t *testing.T) {
	t.Parallel()
	c, one, key := heldForLong(t)
	incarnation, began := c.incarnation(1), c.now(1)
	one.end()
	c.do(1, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	two := c.startDaemon()
	keptOut(t, two, 1, "maxmemory-policy is allkeys-lru")
	two.end()
	c.do(1, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	three := c.startDaemon()
	three.startsAnew(c, 1, incarnation, began, key)
}

// The count that an incarnation began with is on the master, where a daemon that was not there
// finds it.
func TestEviction_WhileNoDaemonIsConnectedEndsTheIncarnation(t *testing.T) {
	t.Parallel()
	for what, args := range map[string][]string{"volatile": nil, "durable": durably} {
		t.Run(what, func(t *testing.T) {
			c, one, key := heldForLong(t, args...)
			incarnation, began := c.incarnation(1), c.now(1)
			one.end()
			c.evict(1)
			two := c.startDaemon()
			two.startsAnew(c, 1, incarnation, began, key)
			two.await(0, "voting")
		})
	}
}

// A server that evicted before its first incarnation is as good as any other; a
// count that falls below the one it began with ends the incarnation.
func TestEviction_BeforeTheFirstIncarnationDoesNoHarm(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, lasting)
	c.do(1, "SET", "k", "x", "EX", 1000)
	c.evictBlank(1)
	one := c.daemon()
	if got := c.identity(1)[0]; !strings.HasSuffix(got, fmt.Sprint(":", c.stat(1, "evicted_keys"))) || strings.HasSuffix(got, ":0") {
		t.Errorf("the identity begins with %s, evicted_keys is %d", got, c.stat(1, "evicted_keys"))
	}
	incarnation, began := c.incarnation(1), c.now(1)
	one.end()
	c.do(1, "CONFIG", "RESETSTAT")
	two := c.startDaemon()
	two.startsAnew(c, 1, incarnation, began, "")
}

// evictBlank is evict on a server without a seal.
func (c *cluster) evictBlank(i int) {
	c.t.Helper()
	c.do(i, "CONFIG", "SET", "maxmemory-policy", "volatile-random")
	c.do(i, "CONFIG", "SET", "maxmemory", 1)
	eventually(c.t, "the server has evicted keys", func() bool { return c.stat(i, "evicted_keys") > 0 })
	c.do(i, "CONFIG", "SET", "maxmemory", 0)
	c.do(i, "CONFIG", "SET", "maxmemory-policy", "noeviction")
}

// The new process of a durable master counts from 0, whatever the count was.
func TestEviction_TheCountOfADurableMasterBeginsAnewWithItsProcess(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, lasting, durably...)
	c.do(1, "SET", "k", "x", "EX", 1000)
	c.evictBlank(1)
	one := c.daemon()
	incarnation := c.incarnation(1)
	c.servers[1].Restart()
	one.awaitProcess(1, c.servers[1])
	one.await(1, "voting")
	if now := c.incarnation(1); now != incarnation {
		t.Errorf("the incarnation is %s after a restart, want %s", now, incarnation)
	}
	one.end()
	c.servers[1].Restart()
	began := c.now(1)
	c.evict(1) // by the new process, before a daemon has met it
	two := c.startDaemon()
	two.startsAnew(c, 1, incarnation, began, "")
}

// Without CONFIG the policy is read at admissions only, and the count shows an eviction.
func TestEviction_IsFoundWhereCONFIGIsForbidden(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, lasting)
	for i := range c.servers {
		c.do(i, "ACL", "SETUSER", "noconfig", "on", ">secret", "~*", "&*", "+@all", "-config")
	}
	one := c.daemon(func(_ *daemon, o *pool.Options) {
		for i := range o.Masters {
			o.Masters[i].Username, o.Masters[i].Password = "noconfig", "secret"
		}
	})
	incarnation, began := c.incarnation(1), c.now(1)
	c.evict(1)
	one.startsAnew(c, 1, incarnation, began, "")
}
