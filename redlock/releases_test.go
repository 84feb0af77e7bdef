package redlock

// releases_test.go: "0" means that the token did not hold the lock, and a
// release goes on until every copy is gone.

import (
	"testing"
	"time"

	"redlockd/pool/faulty"
	"redlockd/redlock/redlocktest"
)

// Rule: quarantined-absence. The lease is valid; two masters forgot it.
func TestRelease_AMasterThatForgotDoesNotProveThatALockWasNotHeld(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, 5*time.Second)
	one, two := c.daemon(), c.daemon()
	held := one.take("k", 5*time.Second)
	for _, i := range []int{1, 2} {
		c.servers[i].RestartEmpty()
		two.awaitProcess(i, c.servers[i])
	}
	was, err := two.unlock("k", held.Token)
	if err == nil {
		t.Fatalf("the release of a valid lock was answered %v by masters that forgot it", was)
	}
	noQuorum(t, err, "1 of 3")
}

// Rule: repeat-absence. "Not held" is the first answer that the daemon receives from a
// new incarnation.
func TestRelease_AnAbsenceWithoutAGoodSealProvesNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon(blind)
	held := one.take("k", long)
	c.servers[1].FlushAll()
	c.servers[2].FlushAll()
	was, err := two.unlock("k", held.Token)
	if err == nil {
		t.Fatalf("the release of a valid lock was answered %v by masters that forgot it", was)
	}
	noQuorum(t, err)
}

// Rule: owed. The copy would block the key for half a minute.
func TestRelease_ReachesAMasterThatWasCutOff(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.daemon(relayed)
	held := one.take("k", long)
	one.relays[2].Refuse()
	one.relays[2].Cut()
	one.free("k", held.Token)
	if got := c.copies("k"); got[2] != string(held.Token) {
		t.Fatalf("copies %q, want one left on c", got)
	}
	one.relays[2].Accept()
	redlocktest.EventuallyIn(t, beforeItsTime(), "the copy is gone before its time", func() bool { return c.empty(0, 1, 2) })
}

func TestRelease_ReachesAMasterThatWasStopped(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.daemon()
	held := one.take("k", long)
	c.servers[2].Stop()
	one.await(2, "down")
	one.free("k", held.Token)
	c.servers[2].Cont()
	redlocktest.EventuallyIn(t, beforeItsTime(), "the copy is gone before its time", func() bool { return c.empty(0, 1, 2) })
}

// The daemon's own record decides what the answers leave open: its lease runs,
// so a quorum held it, and one master has let go of it.
func TestRelease_OfALeaseThatIsValidInTheDaemonsRecordsSucceedsOnOneMaster(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.daemon(relayed, blind)
	held := one.take("k", long)
	for _, i := range []int{1, 2} {
		one.relays[i].Pause(faulty.ToClient)
	}
	one.free("k", held.Token)
	for _, i := range []int{1, 2} {
		one.relays[i].Resume()
	}
	eventually(t, "nothing is left", func() bool { return c.empty(0, 1, 2) })
}
