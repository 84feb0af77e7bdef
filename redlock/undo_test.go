package redlock

// undo_test.go: a failed attempt leaves nothing behind, and takes nothing away
// that is not its own.

import (
	"fmt"
	"testing"
	"time"

	"redlockd/pool/faulty"
	"redlockd/redlock/lease"
	"redlockd/redlock/redlocktest"
)

// The repeat of a lock by its own token fails; what it found on the masters is the lock itself
// and stays.
func TestUndo_OfARepeatLeavesTheLeaseAlone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two, three := c.daemon(), c.daemon(relayed, blind), c.daemon()
	const token = "the-holder's-own"
	one.takeAs("k", token, long)
	for _, i := range []int{1, 2} {
		two.relays[i].Pause(faulty.ToClient)
	}
	_, err := two.lockAs("k", token, 10*time.Second)
	noQuorum(t, err, "1 of 3")
	for _, i := range []int{1, 2} {
		two.relays[i].Resume()
	}
	two.settled(1, 2)
	if got := c.copies("k"); got[0] != token || got[1] != token || got[2] != token {
		t.Errorf("copies %q of a lease that runs, want all", got)
	}
	three.refuse("k", time.Second)
}

// Rule: undo-guard. Masters have executed an attempt and answer late, or refuse its undo for a while.
// Meanwhile its caller has begun again through another daemon, and counts on the copies of the first
// attempt, or has not.
func TestUndo_LeavesACopyAloneThatARetryCountsOn(t *testing.T) {
	t.Parallel()
	for what, request := range map[string]LockRequest{
		"exclusive": {}, "reader": {Mode: Readers}, "permit": {Mode: PermitsOf(1)}, "several keys": {More: []Key{"l"}},
	} {
		for _, refused := range []bool{false, true} {
			for _, retried := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, undo refused %v, retried %v", what, refused, retried), func(t *testing.T) {
					t.Parallel()
					c := newCluster(t, 3, long)
					c.aclUser()
					one, two, three := c.daemon(relayed, blind, restricted), c.daemon(), c.daemon()
					late := []int{1, 2}
					for _, i := range late {
						one.relays[i].Pause(faulty.ToClient)
						if refused {
							for _, command := range []string{"-del", "-zrem", "-hdel"} {
								c.do(i, "ACL", "SETUSER", "redlockd", command)
							}
						}
					}
					request := request
					request.Key, request.Token, request.TTL = "k", tokenA, long
					alone := request.alone()
					alone.Mode = lease.Waiting(alone.Mode, nil) // it is not repeated
					_, err := redlocktest.Acquire(t, one.Leases, alone)
					noQuorum(t, err, "1 of 3")
					if retried {
						two.get(request)
						two.idle()
					}
					for _, i := range late {
						one.relays[i].Resume()
					}
					if refused {
						for _, i := range late {
							if !retried { // a copy that the retry has moved is found to be another's without these commands
								eventually(t, "the undo is refused", func() bool { return one.Masters(0)[i].PendingReleases > 0 })
							}
							for _, command := range []string{"+del", "+zrem", "+hdel"} {
								c.do(i, "ACL", "SETUSER", "redlockd", command)
							}
						}
						one.reconnects(late...) // it is sent again
					}
					for _, i := range late {
						one.await(i, "voting")
					}
					one.settled(0, 1, 2)
					if !retried {
						eventually(t, "nothing is left", func() bool { return c.empty(0, 1, 2) })
						return
					}
					for i := range c.servers {
						for _, key := range append([]Key{"k"}, request.More...) {
							if c.kindOf(i, string(key), tokenA) == "" {
								t.Errorf("master %s has no copy at %s of a lease that runs", name(i), key)
							}
						}
					}
					three.held(LockRequest{Key: "k", Token: tokenB, TTL: long})
				})
			}
		}
	}
}

// Rules: undo-all, owed. Three masters executed the command and could not answer.
func TestUndo_ReachesMastersThatDidNotAnswer(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, long)
	one := c.daemon(relayed, blind) // a heartbeat under way would keep the lock from being sent
	mute := []int{2, 3, 4}
	for _, i := range mute {
		one.relays[i].Pause(faulty.ToClient)
	}
	_, err := one.lock("k", long)
	noQuorum(t, err, "2 of 5", "c=", "d=", "e=")
	for _, i := range mute {
		if c.copies("k")[i] == "" {
			t.Errorf("master %s was not even asked", name(i))
		}
	}
	for _, i := range mute {
		one.relays[i].Resume()
	}
	redlocktest.EventuallyIn(t, beforeItsTime(), "nothing is left long before the lease would have ended",
		func() bool { return c.empty(0, 1, 2, 3, 4) })
}

// Rule: undo-once. Masters execute an undo, and their answers are lost. The caller has retried
// through another daemon meanwhile, and its copies end when those of the undone attempt did.
func TestUndo_ByACallersTokenIsNotRepeatedOnceItMayHaveBeenExecuted(t *testing.T) {
	t.Parallel()
	for what, request := range map[string]LockRequest{
		"exclusive": {}, "reader": {Mode: Readers}, "permit": {Mode: PermitsOf(1)}, "several keys": {More: []Key{"l"}},
	} {
		for how, lose := range map[string]func(*faulty.Relay){
			"late": func(*faulty.Relay) {}, "cut": (*faulty.Relay).Cut,
		} {
			t.Run(what+", "+how, func(t *testing.T) {
				t.Parallel()
				c := newCluster(t, 3, long)
				one, two := c.daemon(relayed, blind), c.daemon()
				request := request
				request.Key, request.Token = "k", tokenA
				undone := one.get(request)
				made := map[int]any{}
				ends := map[int]int64{}
				for i := range c.servers {
					made[i], ends[i] = c.do(i, "DUMP", "k"), c.ends(i, "k")
				}
				for _, i := range []int{1, 2} {
					one.relays[i].Pause(faulty.ToClient)
				}
				one.GiveBack(undone)
				eventually(t, "the undo is executed", func() bool { return c.empty(0, 1, 2) })
				for i := range c.servers { // the retry
					c.do(i, "RESTORE", "k", ends[i], made[i], "ABSTTL")
				}
				for _, i := range []int{1, 2} {
					one.await(i, "down")
					lose(one.relays[i])
					one.relays[i].Resume()
				}
				one.settled(1, 2)
				two.held(LockRequest{Key: "k", Token: tokenB})
			})
		}
	}
}

// A grant that never reached its holder is released like any other.
func TestUndo_AGrantCanBeGivenBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	one.GiveBack(one.take("k", long))
	eventually(t, "nothing is left", func() bool { return c.empty(0, 1, 2) })
	two.free("k", two.take("k", 10*time.Second).Token)
	if n := one.Counters().GivenBack; n != 1 {
		t.Errorf("%d grants were given back, want 1", n)
	}
}

// A lease that is shorter than what the masters need is not granted, and does
// not stay on them either.
func TestUndo_OfAQuorumThatCameTooLate(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one := c.daemon(relayed, blind)
	for _, r := range one.relays {
		r.Delay(600*time.Millisecond, faulty.ToClient)
	}
	_, err := one.lock("k", 500*time.Millisecond)
	if _, late := err.(*Expired); !late {
		t.Fatalf("answered %v, want Expired", err)
	}
	eventually(t, "nothing is left", func() bool { return c.empty(0, 1, 2) })
}
