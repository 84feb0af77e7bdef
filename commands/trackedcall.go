// trackedCall is a call whose client tracks what it reads and takes.

package commands

import (
	"slices"
	"sync"
	"time"

	"redlockd/commands/access"
	"redlockd/redlock"
)

// trackedCall stands before the Completer of a call whose client tracks: tracking begins when the
// reply is written, so that no invalidation overtakes it.
type trackedCall struct {
	Completer
	tracking  *Tracking
	db        int
	keeps     bool                         // what the client sees is tracked
	suspended map[redlock.Key]redlock.Seen // what was tracked of keys that the call may change

	mu   sync.Mutex
	seen []seenKey
}

type seenKey struct {
	key   redlock.Key
	seen  redlock.Seen
	at    time.Time
	freed bool // the call released the lock
}

// track is called before a command is run, in the order of the connection's commands.
func (c *Call) track(row *Command) {
	t := c.Client.Tracking
	if t == nil || row.Category == access.CategoryConnection {
		return
	}
	keeps := !t.OptIn && !t.Broadcast
	if t.Caching != nil {
		keeps = *t.Caching
	}
	switch row.Name {
	case "multi", "watch": // it is for the whole transaction
	default:
		t.Caching = nil
	}
	var suspended map[redlock.Key]redlock.Seen
	if slices.Contains(row.Flags, "write") {
		suspended = t.suspend(c.Client.DB, c.Args[1:])
	}
	if !keeps && suspended == nil {
		return
	}
	c.Completer = &trackedCall{Completer: c.Completer, tracking: t, db: c.Client.DB, keeps: keeps, suspended: suspended}
}

// Saw notes what the client will have seen of a key with the reply to the call. If err is
// that the masters could not decide, the client is notified when they can. After any other
// error it has seen nothing.
func (c *Call) Saw(key redlock.Key, seen redlock.Seen, err error) {
	if err != nil {
		if code := Code(err); code != "NOQUORUM" && code != "EXPIRED" {
			return
		}
		seen = redlock.Seen{Undecided: true}
	}
	c.note(seenKey{key: key, seen: seen})
}

// SawHeld is Saw for a lock that the client has with this token, for that long.
func (c *Call) SawHeld(key redlock.Key, token redlock.Token, validity time.Duration) {
	if _, tracked := c.Completer.(*trackedCall); tracked {
		c.note(seenKey{key: key, seen: redlock.Seen{View: redlock.View{Kind: "string", Value: token}, Lease: validity}, at: time.Now()})
	}
}

// Freed notes that the call released a lock. What then becomes of it is not tracked.
func (c *Call) Freed(key redlock.Key) {
	c.note(seenKey{key: key, seen: redlock.Seen{View: redlock.View{Kind: "none"}}, freed: true})
}

func (c *Call) note(one seenKey) {
	if a, ok := c.Completer.(*trackedCall); ok {
		a.mu.Lock()
		a.seen = append(a.seen, one)
		a.mu.Unlock()
	}
}

// Complete implements Completer.
func (tc *trackedCall) Complete(r Reply) {
	tc.mu.Lock()
	nothing := len(tc.seen) == 0 && len(tc.suspended) == 0
	tc.mu.Unlock()
	if nothing {
		tc.Completer.Complete(r)
	} else {
		tc.CompleteDeferred(Later(func() Reply { return r }))
	}
}

// CompleteDeferred implements Completer.
func (tc *trackedCall) CompleteDeferred(d DeferredReply) {
	tc.Completer.CompleteDeferred(trackedReply{d, tc})
}

type trackedReply struct {
	DeferredReply
	call *trackedCall
}

func (t trackedReply) Reply() Reply {
	reply := t.DeferredReply.Reply()
	t.call.settle()
	return reply
}

// settle tracks what the client sees now, and what it had seen of keys that the call left alone.
func (tc *trackedCall) settle() {
	tc.mu.Lock()
	all := tc.seen
	tc.mu.Unlock()
	t := tc.tracking
	for _, one := range all {
		former, was := tc.suspended[one.key]
		delete(tc.suspended, one.key)
		if was && !t.NoLoop && !one.seen.Undecided && !former.Same(&one.seen) {
			t.Send(Array(Bulk(string(one.key))))
		}
		if (tc.keeps || was && one.seen.Undecided) && !one.freed {
			if one.seen.Lease > 0 {
				one.seen.Lease = max(one.seen.Lease-time.Since(one.at), 1)
			}
			t.track(tc.db, one.key, one.seen)
		}
	}
	for key, seen := range tc.suspended {
		seen.Lease = 0 // the call may have changed it
		t.track(tc.db, key, seen)
	}
	if len(all) > 0 {
		t.account()
	}
}
