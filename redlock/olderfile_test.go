package redlock

// olderfile_test.go: what a master knew of a change goes with its memory. One that comes back with an
// older file, beside one that a change has left out, must not give the former list a quorum.

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/setup"
)

// backUp copies what a master has on disk, and returns what kills the master, or another one, and puts it
// in the place of its files.
func (c *cluster) backUp(i int) (restore func(into ...int)) {
	c.t.Helper()
	if saved := c.do(i, "CONFIG", "GET", "appendonly").([]any)[1]; saved == "no" {
		c.do(i, "SAVE")
	}
	data := c.do(i, "CONFIG", "GET", "dir").([]any)[1].(string)
	backup := filepath.Join(c.t.TempDir(), "backup")
	if err := os.CopyFS(backup, os.DirFS(data)); err != nil {
		c.t.Fatal(err)
	}
	return func(into ...int) {
		c.t.Helper()
		i, data := i, data
		if len(into) > 0 {
			i, data = into[0], c.do(into[0], "CONFIG", "GET", "dir").([]any)[1].(string)
		}
		c.servers[i].Kill()
		if err := os.RemoveAll(data); err != nil {
			c.t.Fatal(err)
		}
		if err := os.CopyFS(data, os.DirFS(backup)); err != nil {
			c.t.Fatal(err)
		}
	}
}

// unrecorded keeps a daemon's records of registers from the masters, as if the group were idle: no
// register tells then that a file is older. It would write them again each second.
func unrecorded(_ *daemon, o *pool.Options) {
	hooked(o, func(_ string, commands []pool.Command, exchange func([]pool.Command) []pool.Reply) []pool.Reply {
		for i := range commands {
			if words := slices.Clone(commands[i].Args); words[0] == "ZADD" && words[1] == "redlockd:acked" {
				words[1] = "redlockd:lost"
				commands[i].Args = words
			}
		}
		return exchange(commands)
	})
}

// cIsReplaced has a daemon follow when c, which is cut off, is replaced by d. The daemon does not reach a
// afterwards, whose files have been copied before. Those who stay start before the change, and do not
// reach b from then on.
func (p *operator) cIsReplaced(stay ...**daemon) (now *daemon, restore func(into ...int)) {
	c := p.cluster
	c.t.Helper()
	p.bootstrap(0, 1, 2)
	now = c.startDaemon(relayed, unrecorded, listing(0, 1, 2))
	for _, one := range stay {
		*one = c.startDaemon(pinned, relayed, listing(0, 1, 2))
	}
	for i := range 3 {
		now.await(i, "voting")
		for _, one := range stay {
			(*one).await(i, "voting")
		}
	}
	restore = c.backUp(0)
	p.relays["c"].Refuse()
	p.relays["c"].Cut()
	now.leave(2)
	for _, one := range stay {
		(*one).leave(1)
	}
	p.reconfigure(0, 1, 3)
	now.lists(0, 1, 3)
	now.await(2, "voting")
	now.leave(0)
	return now, restore
}

// voteOrNot waits until some masters vote for a daemon, or it has a reason not to count them.
func (d *daemon) voteOrNot(masters ...int) {
	d.t.Helper()
	for _, i := range masters {
		d.either(i, "voting", "older file", "later configuration")
	}
}

// alsoNow wants the key to be refused to the daemons of the former list while the present ones hold it.
func alsoNow(former, now *daemon) {
	former.t.Helper()
	former.idle()
	g := now.take("k", time.Second)
	noQuorum(former.t, alone(former, g, "masters of the present list"), "of ")
}

// Rule: older-file. c is cut off and replaced by d, and a comes back with the file of before. A daemon
// of the former list reaches a and c, the others b and d.
func TestEpoch_AMasterWithAnOlderFileGivesTheFormerListNoQuorum(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 4, time.Second)
	var former *daemon
	now, restore := c.operator(2).cIsReplaced(&former)
	restore()
	former.await(0, "down")
	c.servers[0].Restart()
	former.voteOrNot(0)
	alsoNow(former, now)
}

// Rule: later-epoch. A durable master whose files come from a backup claims to have lost nothing, and
// the other master that still answers the former list was left out. The third one knows better.
func TestEpoch_ADurableMasterFromABackupGivesTheFormerListNoQuorum(t *testing.T) {
	t.Parallel()
	for what, order := range map[string]bool{"it was there before": false, "it comes later": true} {
		t.Run(what, func(t *testing.T) {
			c := newCluster(t, 4, time.Second, durably...)
			now, restore := c.operator(2).cIsReplaced()
			restore()
			c.servers[0].Restart()
			for _, i := range []int{0, 1} { // an idle group: no register tells that the file is older
				c.do(i, "DEL", "redlockd:acked")
			}
			former := c.startDaemon(pinned, relayed, listing(0, 1, 2), func(d *daemon, _ *pool.Options) {
				if order {
					d.relays[1].Refuse()
				}
			})
			if order {
				former.await(0, "voting") // nobody can know better
				former.await(2, "voting")
				former.relays[1].Accept()
				former.either(1, "other settings", "later configuration")
			}
			former.voteOrNot(0, 2)
			alsoNow(former, now)
		})
	}
}

// Rule: older-file, later-epoch. a's volume is started under another address, and a daemon with that
// address and the former list. It reaches all masters of that list: nothing is cut off.
func TestEpoch_AVolumeUnderAnotherAddressGivesTheFormerListNoQuorum(t *testing.T) {
	t.Parallel()
	for what, args := range map[string][]string{"in memory": nil, "durable": durably} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 5, time.Second, args...)
			now, restore := c.operator(2).cIsReplaced()
			c.servers[0].Kill()
			restore(4)
			c.servers[4].Restart()
			for _, i := range []int{1, 4} { // an idle group: no register tells that the file is older
				c.do(i, "DEL", "redlockd:acked")
			}
			former := c.startDaemon(pinned, listing(0, 1, 2), func(_ *daemon, o *pool.Options) { o.Masters[0].Address = c.servers[4].Addr() })
			former.voteOrNot(0)
			former.either(1, "other settings", "later configuration")
			alsoNow(former, now)
		})
	}
}

// Rule: older-file. All masters of a list that the group has left long ago are started again with their
// volumes, and a daemon with its file.
func TestEpoch_AnOldListThatIsStartedAgainGetsNoQuorum(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, time.Second)
	c.bootstrapOf(0, 1, 2)
	var restores []func(...int)
	for i := range 3 {
		restores = append(restores, c.backUp(i))
	}
	c.reconfigure(0, 1, 3)
	c.reconfigure(0, 4, 3)
	now := c.startDaemon(listing(0, 4, 3), relayed)
	for i := range 3 {
		now.await(i, "voting")
	}
	now.leave(0)
	for i, restore := range restores {
		restore()
		c.servers[i].Restart()
	}
	former := c.startDaemon(pinned, awaiting, listing(0, 1, 2))
	former.voteOrNot(0, 1, 2)
	alsoNow(former, now)
}

// Rule: later-epoch. Of five masters two are replaced, and one of the others comes back with older
// files: three are a quorum of the former list, and two know better.
func TestEpoch_OfFiveMastersAMajorityOfOldOnesIsNone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 7, time.Second, durably...)
	p := c.operator(3, 4)
	p.bootstrap(0, 1, 2, 3, 4)
	now := c.startDaemon(relayed, unrecorded, listing(0, 1, 2, 3, 4))
	for i := range 5 {
		now.await(i, "voting")
	}
	restore := c.backUp(0)
	p.cutOff()
	now.leave(3, 4)
	p.reconfigure(0, 1, 2, 3, 5)
	p.reconfigure(0, 1, 2, 6, 5)
	now.lists(0, 1, 2, 6, 5)
	now.leave(0)
	restore()
	c.servers[0].Restart()
	for i := range 3 {
		c.do(i, "DEL", "redlockd:acked")
	}
	former := c.startDaemon(pinned, listing(0, 1, 2, 3, 4))
	former.voteOrNot(0, 3, 4)
	eventually(t, "the present list has a quorum", func() bool { return now.votes() >= 3 })
	alsoNow(former, now)
}

// Rule: older-change. An operator who reaches an older file and the master that was left out changes the
// former list once more.
func TestEpoch_AChangeOfAnOlderFileDoesNotTakePlace(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, time.Second)
	p := c.operator(1, 2)
	now, restore := p.cIsReplaced()
	restore()
	c.servers[0].Restart()
	p.cutOff()
	err := setup.Reconfigure(t.Context(), c.optionsFor(0, 2, 4), setup.ChangeTerms{Absent: true}, t.Output())
	if err == nil {
		other := c.startDaemon(listing(0, 2, 4))
		eventually(t, "another list has a quorum", func() bool { return other.votes() >= 2 })
		alsoNow(other, now)
	}
	if err == nil || !strings.Contains(err.Error(), "a has come back with what may be an older file") {
		t.Errorf("%v, want that a's memory may be older", err)
	}
}
