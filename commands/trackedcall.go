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
func (a *trackedCall) Complete(r Reply) {
	a.mu.Lock()
	nothing := len(a.seen) == 0 && len(a.suspended) == 0
	a.mu.Unlock()
	if nothing {
		a.Completer.Complete(r)
	} else {
		a.CompleteDeferred(Later(func() Reply { return r }))
	}
}

// CompleteDeferred implements Completer.
func (a *trackedCall) CompleteDeferred(d DeferredReply) {
	a.Completer.CompleteDeferred(trackedReply{d, a})
}

type trackedReply struct {
	DeferredReply
	call *trackedCall
}

func (d trackedReply) Reply() Reply {
	reply := d.DeferredReply.Reply()
	d.call.settle()
	return reply
}

// settle tracks what the client sees now, and what it had seen of keys that the call left alone.
func (a *trackedCall) settle() {
	a.mu.Lock()
	all := a.seen
	a.mu.Unlock()
	t := a.tracking
	for _, one := range all {
		former, was := a.suspended[one.key]
		delete(a.suspended, one.key)
		if was && !t.NoLoop && !one.seen.Undecided && !former.Same(&one.seen) {
			t.Send(Array(Bulk(string(one.key))))
		}
		if (a.keeps || was && one.seen.Undecided) && !one.freed {
			if one.seen.Lease > 0 {
				one.seen.Lease = max(one.seen.Lease-time.Since(one.at), 1)
			}
			t.track(a.db, one.key, one.seen)
		}
	}
	for key, seen := range a.suspended {
		seen.Lease = 0 // the call may have changed it
		t.track(a.db, key, seen)
	}
	if len(all) > 0 {
		t.account()
	}
}
