package redlock

// undoflush_test.go: an undo finds that the master has lost its scripts.

import (
	"testing"

	"redlockd/pool/faulty"
)

// Rule: undo-once. An undo that a master refused with NOSCRIPT was not executed, so it is sent again,
// also by a caller's token and where the refusal came late.
func TestUndo_ByACallersTokenIsSentAgainAfterNOSCRIPT(t *testing.T) {
	t.Parallel()
	for what, request := range map[string]LockRequest{
		"exclusive": {}, "reader": {Mode: Readers}, "permit": {Mode: PermitsOf(1)}, "several keys": {More: []Key{"l"}}, "fair": {Fair: true},
	} {
		for when, late := range map[string]bool{"at once": false, "late": true} {
			t.Run(what+", "+when, func(t *testing.T) {
				t.Parallel()
				c := newCluster(t, 3, long)
				one := c.daemon(relayed, blind)
				request := request
				request.Key, request.Token = "k", tokenA
				undone := one.get(request)
				eventually(t, "all masters have it", func() bool { return !c.empty(0) && !c.empty(1) && !c.empty(2) })
				one.settled(0, 1, 2)
				c.flushScripts()
				if late {
					for _, i := range []int{1, 2} {
						one.relays[i].Pause(faulty.ToClient)
					}
				}
				one.GiveBack(undone)
				if late {
					for _, i := range []int{1, 2} {
						one.await(i, "down")
						one.relays[i].Resume()
					}
				}
				one.settled(0, 1, 2)
				eventually(t, "nothing is left", func() bool { return c.empty(0, 1, 2) })
			})
		}
		t.Run(what+", undecided", func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3, long)
			one := c.daemon(relayed, blind)
			request := request
			request.Key, request.Token, request.TTL = "k", tokenA, long
			for _, i := range []int{1, 2} {
				one.relays[i].Pause(faulty.ToClient)
			}
			failed := make(chan lockAnswer, 1)
			one.Lock(nil, request, func(g Grant, err error) { failed <- lockAnswer{g, err} })
			eventually(t, "all masters have it", func() bool { return !c.empty(0) && !c.empty(1) && !c.empty(2) })
			c.flushScripts()
			noQuorum(t, receive(t, failed).err, "1 of 3")
			for _, i := range []int{1, 2} {
				one.relays[i].Resume()
			}
			one.settled(0, 1, 2)
			eventually(t, "nothing is left", func() bool { return c.empty(0, 1, 2) })
		})
	}
}
