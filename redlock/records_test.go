package redlock

// records_test.go: durable masters that come back with older memory while no
// daemon remembers what they had acknowledged. The other masters do.

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlockd/pool/faulty"
	"redlockd/pool/setup"
)

// dataOf is the directory of a server's files.
func dataOf(t *testing.T, s *faulty.Server) string {
	t.Helper()
	return on(t, s, "CONFIG", "GET", "dir").([]any)[1].(string)
}

// backUp copies a server's files and returns where they are.
func backUp(t *testing.T, s *faulty.Server) string {
	t.Helper()
	return copied(t, dataOf(t, s))
}

func copied(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// comeBackWith kills masters, puts other files in place of theirs and starts them.
func (c *cluster) comeBackWith(files map[int]string) {
	c.t.Helper()
	for i, from := range files {
		data := dataOf(c.t, c.servers[i])
		c.servers[i].Kill()
		if err := os.RemoveAll(data); err != nil {
			c.t.Fatal(err)
		}
		if err := os.CopyFS(data, os.DirFS(from)); err != nil {
			c.t.Fatal(err)
		}
	}
	for i := range files {
		c.servers[i].Restart()
	}
}

// remembered is what one master's record has of another one's register.
func (c *cluster) remembered(by, of int) (score int64) {
	c.t.Helper()
	if text, ok := c.do(by, "ZSCORE", "redlockd:acked", "group=default/db=0/master="+name(of)).(string); ok {
		score, _ = strconv.ParseInt(text, 10, 64)
	}
	return score
}

// awaitRecord waits until one master remembers another's register as it is now.
func (c *cluster) awaitRecord(by, of int) {
	c.t.Helper()
	now := c.register(of)
	eventually(c.t, fmt.Sprintf("master %s remembers the register of %s", name(by), name(of)), func() bool {
		return c.remembered(by, of) >= now
	})
}

// kill stops a daemon as a kill does: nothing is released.
func (d *daemon) kill() { d.engine.Pool.Close() }

// rolledBack requires that a master begins a new incarnation under a new daemon.
func (c *cluster) rolledBack(d *daemon, i int, incarnation string) {
	c.t.Helper()
	d.await(i, "quarantined")
	if now := c.incarnation(i); now == incarnation {
		c.t.Errorf("master %s goes on as %s with a memory that was rolled back", name(i), now)
	}
}

// Two of three masters come back from backups, and the daemon is new, too.
func TestRecords_AMajorityFromBackupsHoldsNoSecondLockAndRepeatsNoID(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long, durable...)
	one := c.daemon()
	backups := map[int]string{0: backUp(t, c.servers[0]), 1: backUp(t, c.servers[1])}
	incarnations := []string{c.incarnation(0), c.incarnation(1), c.incarnation(2)}
	held := one.take("k", long)
	last := one.draw("n", 100) + 99
	c.awaitRecord(2, 0)
	c.awaitRecord(2, 1)
	one.kill()
	c.comeBackWith(backups)

	two := c.startDaemon()
	if got, err := two.ids("n", 1); err == nil && got <= last {
		t.Errorf("id %d was given after id %d", got, last)
	}
	noQuorum(t, two.refuse("k", time.Second))
	for i := range 2 {
		c.rolledBack(two, i, incarnations[i])
	}
	two.await(2, "voting")
	if now := c.incarnation(2); now != incarnations[2] {
		t.Errorf("master c, which lost nothing, goes on as %s, want %s", now, incarnations[2])
	}
	if got := c.copies("k")[2]; got != string(held.Token) {
		t.Errorf("master c has the copy %q", got)
	}
	// Both began again above what the third remembers: they are not invalidated once
	// more.
	for i := range 2 {
		if now, want := c.register(i), c.remembered(2, i); now < want {
			t.Errorf("master %s began a new incarnation at %d, below the %d that is remembered", name(i), now, want)
		}
	}
	if n := two.engine.Pool.Counters().Invalidated; n != 2 {
		t.Errorf("%d incarnations were invalidated, want 2", n)
	}
}

// One master of a bare quorum comes back from a backup, the third was away meanwhile:
// its records are old, and the second's decide.
func TestRecords_OneMasterOfABareQuorumFromABackupDoesNotVote(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long, durable...)
	one := c.daemon()
	backup, incarnation := backUp(t, c.servers[0]), c.incarnation(0)
	c.servers[2].Kill()
	one.await(2, "down")
	one.take("k", long)
	last := one.draw("n", 100) + 99
	c.awaitRecord(1, 0)
	one.kill()
	c.servers[2].Restart()
	c.comeBackWith(map[int]string{0: backup})

	two := c.startDaemon()
	_ = two.refuse("k", time.Second) // as held, or without a quorum
	c.rolledBack(two, 0, incarnation)
	two.await(1, "voting")
	two.await(2, "voting")
	if got := two.draw("n", 1); got <= last {
		t.Errorf("id %d was given after id %d", got, last)
	}
}

// A replica that lags is promoted and started again in its master's place: nothing
// in its memory tells that it was a replica.
func TestRecords_APromotedReplicaThatWasRestartedDoesNotVote(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long, durable...)
	one := c.daemon()
	files := map[int]string{}
	incarnations := []string{c.incarnation(0), c.incarnation(1)}
	for i := range 2 {
		files[i] = c.promoted(i)
	}
	one.take("k", long)
	c.awaitRecord(2, 0)
	c.awaitRecord(2, 1)
	one.kill()
	c.comeBackWith(files)

	two := c.startDaemon()
	noQuorum(t, two.refuse("k", time.Second))
	for i := range 2 {
		c.rolledBack(two, i, incarnations[i])
	}
}

// promoted are the files of a replica of a master that was cut off and promoted.
func (c *cluster) promoted(of int) string {
	c.t.Helper()
	replica := faulty.Start(c.t, durable...)
	host, port, _ := strings.Cut(c.servers[of].Addr(), ":")
	c.do(of, "CONFIG", "SET", "repl-diskless-sync-delay", "0")
	on(c.t, replica, "REPLICAOF", host, port)
	info := func(section string) string { return on(c.t, replica, "INFO", section).(string) }
	eventually(c.t, "the replica has caught up and has it on disk", func() bool {
		up := strings.Contains(info("replication"), "master_link_status:up") // its file is rewritten from then on
		disk := info("persistence")
		return up && strings.Contains(disk, "aof_rewrite_in_progress:0") && strings.Contains(disk, "aof_rewrite_scheduled:0") && strings.Contains(disk, "aof_last_write_status:ok")
	})
	on(c.t, replica, "REPLICAOF", "NO", "ONE")
	data := dataOf(c.t, replica)
	replica.Kill()
	return copied(c.t, data)
}

// A daemon that ran all the time has recorded the incarnation after the one that comes
// back.
func TestRecords_AnEarlierIncarnationDoesNotComeBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long, durable...)
	one := c.daemon()
	backup, first := backUp(t, c.servers[0]), c.incarnation(0)
	c.do(0, "FLUSHALL")
	one.await(0, "quarantined")
	eventually(t, "master a has begun another incarnation", func() bool { return c.do(0, "EXISTS", "redlockd:seal") == int64(1) && c.incarnation(0) != first })
	c.servers[1].Kill() // its records are not needed
	one.await(1, "down")
	c.comeBackWith(map[int]string{0: backup})
	one.awaitProcess(0, c.servers[0])
	one.await(0, "quarantined")
	if now := c.incarnation(0); now == first {
		t.Errorf("the incarnation %s, which another one had followed, is back", now)
	}
}

// Masters that kept everything vote at once, whatever the daemons' records contain.
func TestRecords_DurableMastersVoteAtOnceAfterARestart(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long, durable...)
	one := c.daemon()
	held := one.take("k", long)
	var incarnations []string
	for i := range c.servers {
		incarnations = append(incarnations, c.incarnation(i))
		c.awaitRecord(i, (i+1)%3)
		c.awaitRecord(i, (i+2)%3)
	}
	one.kill()
	for _, away := range []int{-1, 1} { // all are there, one is not
		for i := range c.servers {
			if c.servers[i].Kill(); i != away {
				c.servers[i].Restart()
			}
		}
		two := c.startDaemon()
		for i := range c.servers {
			if i == away {
				continue
			}
			two.await(i, "voting") // much sooner than after a quarantine
			if now := c.incarnation(i); now != incarnations[i] {
				t.Errorf("master %s goes on as %s, want %s", name(i), now, incarnations[i])
			}
		}
		if n := two.engine.Pool.Counters().Invalidated; n != 0 {
			t.Errorf("%d incarnations were invalidated", n)
		}
		if away < 0 {
			isHeld(t, two.refuse("k", long))
		} else {
			two.free("k", held.Token)
		}
		two.kill()
	}
}

// A blank master begins above what the others remember of it, although a daemon
// that has just started has seen nothing.
func TestRecords_ABlankMasterBeginsAboveThem(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.daemon()
	ahead := c.register(0) + time.Hour.Microseconds()
	c.raise(0, ahead)
	c.awaitRecord(1, 0)
	one.kill()
	c.servers[0].RestartEmpty()
	two := c.startDaemon()
	two.await(0, "quarantined")
	if got := c.register(0); got < ahead {
		t.Errorf("the register is %d, and %d is remembered", got, ahead)
	}
	if n := two.engine.Pool.Counters().Invalidated; n != 0 {
		t.Errorf("%d incarnations were invalidated, want none", n)
	}
}

// Whatever stands at the key, the masters vote, and the log has it once.
func TestRecords_ThatAreDamagedCountAsAbsent(t *testing.T) {
	t.Parallel()
	for what, write := range map[string][]any{
		"another type":  {"SET", "redlockd:acked", "mine"},
		"too high":      {"ZADD", "redlockd:acked", int64(1)<<52 + 1, "group=default/db=0/master=a"},
		"endless":       {"ZADD", "redlockd:acked", "inf", "group=default/db=0/master=a"},
		"below zero":    {"ZADD", "redlockd:acked", -7, "group=default/db=0/master=a"},
		"other members": {"ZADD", "redlockd:acked", int64(1) << 51, "group=default/db=1/master=a", int64(1) << 51, "group=other/db=0/master=a", int64(1) << 51, "a"},
	} {
		t.Run(what, func(t *testing.T) {
			c := newCluster(t, 3, long, durable...)
			one := c.daemon()
			one.kill()
			c.do(1, "DEL", "redlockd:acked")
			c.do(1, write...)
			two := c.startDaemon()
			for i := range c.servers {
				two.await(i, "voting")
			}
			two.free("k", two.take("k", long).Token)
			c.awaitRecord(2, 0) // the others' records are written all the same
			if n := two.engine.Pool.Counters().Invalidated; n != 0 {
				t.Errorf("%d incarnations were invalidated", n)
			}
		})
	}
}

// The records cost nothing while nothing happens, and one command a second otherwise.
func TestRecords_OfAnIdleGroupAreNotWritten(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long, durable...)
	one := c.daemon()
	one.take("k", long)
	for i := range c.servers {
		c.awaitRecord(i, (i+1)%3)
		c.awaitRecord(i, (i+2)%3)
	}
	for range 20 {
		admissions := one.engine.Pool.Counters().Admissions
		zadd, zscore, seals := one.idleCalls(c)
		if one.engine.Pool.Counters().Admissions != admissions {
			continue // a slow machine: a connection was given up meanwhile
		}
		if zadd != 0 {
			t.Errorf("%d ZADD for an idle group", zadd)
		}
		if most := seals + int64(len(c.servers)); zscore > most { // of each master one may have been on its way before
			t.Errorf("%d ZSCORE with %d seals of an idle group that is complete", zscore, seals)
		}
		return
	}
	t.Error("the connections did not last for 30 heartbeats")
}

// idleCalls are the commands that masters execute, and the seals that the daemon
// sends, in 30 heartbeats after what was on its way has arrived.
func (d *daemon) idleCalls(c *cluster) (zadd, zscore, seals int64) {
	d.t.Helper()
	sent := func() int64 { return d.engine.Pool.Counters().Seals }
	rest := func(heartbeats int64) {
		start := sent()
		eventually(d.t, "heartbeats of all masters", func() bool { return sent() >= start+3*heartbeats })
	}
	rest(2 * 10)
	start := sent()
	zadd, zscore = c.calls("zadd"), c.calls("zscore")
	rest(3 * 10)
	return c.calls("zadd") - zadd, c.calls("zscore") - zscore, sent() - start
}

// calls adds up how often the masters have executed a command.
func (c *cluster) calls(command string) int64 {
	c.t.Helper()
	return c.servers.Calls(c.t, command)
}

// The operator's declaration that no earlier incarnation matters holds, whatever the
// records contain.
func TestRecords_DoNotUndoABootstrap(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long, durable...)
	one := c.daemon()
	c.raise(0, c.register(0)+time.Hour.Microseconds())
	c.awaitRecord(1, 0)
	one.kill()
	for i := range c.servers {
		c.do(i, "DEL", "redlockd:seal")
	}
	if err := setup.Bootstrap(t.Context(), c.options(), setup.BootstrapTerms{Force: true}, t.Output()); err != nil {
		t.Fatal(err)
	}
	two := c.startDaemon()
	for i := range c.servers {
		two.await(i, "voting") // much sooner than after a quarantine
	}
	if n := two.engine.Pool.Counters().Invalidated; n != 0 {
		t.Errorf("%d incarnations were invalidated", n)
	}
}
