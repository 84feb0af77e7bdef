package redlock

// releases_test.go: "0" means that the token did not hold the lock, and a
// release goes on until every copy is gone.

import (
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
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

// Rule: bulk-own. The lock is granted and released while master c is busy, so that both wait for
// one flush to it, behind another release, which the release joins in one command.
func TestRelease_DoesNotPassTheAcquireOfItsOwnToken(t *testing.T) {
	t.Parallel()
	for _, r := range []LockRequest{{Key: "k", TTL: long, Mode: Readers}, {Key: "k", TTL: long, Mode: PermitsOf(2)}} {
		c := newCluster(t, 3, long)
		p, goOn := new(tap), make(chan struct{})
		one := c.daemon(p.tapped, blind, func(_ *daemon, o *pool.Options) { o.MasterTimeout = patience })
		other := one.take("other", long)
		p.before(func(master string) {
			if master == name(2) {
				<-goOn
			}
		})
		// toC reports whether a flush with all these words has been sent to c.
		toC := func(words ...string) bool {
			return slices.ContainsFunc(p.to(name(2)), func(flush []string) bool {
				text := strings.Join(flush, "\n")
				return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
			})
		}
		busy, err := one.lock("busy", long)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "master c is busy", func() bool { return toC("SET busy") })
		_, _ = one.unlock("other", other.Token)
		a := receive(t, one.request(r))
		if a.err != nil {
			t.Fatal(a.err)
		}
		_, _ = one.unlock("k", a.grant.Token)
		close(goOn)
		one.free("busy", busy.Token)
		if acquire := string(a.grant.Token) + " 1"; !toC(acquire, string(other.Token)) { // 1…: its expiry
			t.Errorf("no flush to c has the first release and the acquire: %q", p.to(name(2)))
		}
		if !c.empty(0, 1, 2) {
			t.Errorf("a release passed the acquire of its own token: %s", c.stands("k"))
		}
	}
}

// Acquires of one flush are one call of a script: each of them has its own key and answer.
func TestAcquire_InOneCallWithOthersIsAsIfItWereAlone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.daemon(blind)
	one.take("connected", long)
	requests := []LockRequest{
		{Key: "a", TTL: long, Mode: Readers}, {Key: "b", TTL: long, Mode: Readers}, {Key: "a", TTL: long, Mode: Readers},
		{Key: "p", TTL: long, Mode: PermitsOf(1)}, {Key: "p", TTL: long, Mode: PermitsOf(1)},
	}
	answers := make(chan lockAnswer, len(requests)) // one each
	var batch Batch
	for _, r := range requests {
		one.Lock(&batch, r, func(g Grant, err error) { answers <- lockAnswer{g, err} })
	}
	batch.Send()
	granted := map[Key]int{}
	for range requests {
		a := receive(t, answers)
		if a.err != nil {
			continue
		}
		granted[a.grant.Key]++
		copies := 0
		for i := range c.servers {
			var held any
			if a.grant.Key == "p" {
				held = c.do(i, "HGET", "p", "1")
			} else if score, ok := c.do(i, "ZSCORE", string(a.grant.Key), string(a.grant.Token)).(string); ok {
				held = score + string(a.grant.Token)
			}
			if text, ok := held.(string); ok && strings.HasSuffix(text, string(a.grant.Token)) {
				copies++
			}
		}
		if copies < 2 {
			t.Errorf("%s was granted, and %d masters have its token", a.grant.Key, copies)
		}
	}
	if granted["a"] != 2 || granted["b"] != 1 || granted["p"] != 1 {
		t.Errorf("granted are %v, want two readers of a, one of b and one permit of p", granted)
	}
}
