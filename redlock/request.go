// LockRequest: a request of a client, and what wraps the request of package lease.

package redlock

import (
	"time"

	"redlockd/redlock/lease"
	"redlockd/redlock/wait"
)

// LockRequest requests a lock. Package lease knows its first fields; a wait and a renewal wrap them.
type LockRequest struct {
	DB        int // see lease.LockRequest
	Key       Key
	More      []Key
	TTL       time.Duration
	Linger    time.Duration
	Token     Token
	Mode      Mode
	Requester *Requester

	Fair  bool          // first come, first served, over all daemons
	Wait  time.Duration // of a wait: how long at most
	Owner Owner         // the connection that will hold the lock, for the detection of deadlock cycles; nil = unknown

	Hold *HoldTerms // renew the lease; nil = do not
}

// plain is the request without what wraps it.
func (r *LockRequest) plain() lease.LockRequest {
	return lease.LockRequest{
		DB: r.DB, Key: r.Key, More: r.More, TTL: r.TTL, Linger: r.Linger, Token: r.Token, Mode: r.Mode, Requester: r.Requester,
	}
}

// alone is the request without a wait. With FAIR, the masters look at the queue.
func (r *LockRequest) alone() lease.LockRequest {
	alone := r.plain()
	if r.Fair {
		alone.Mode = lease.LookingIf(alone.Mode, true)
	}
	return alone
}

// waits is the request with a wait.
func (r *LockRequest) waits() wait.Request {
	return wait.Request{LockRequest: r.plain(), Wait: r.Wait, Fair: r.Fair, Owner: r.Owner}
}

// Kind is how the request's keys are to be held.
func (r *LockRequest) Kind() Kind {
	plain := r.plain()
	return plain.Kind()
}

// Meta is the text that the request's holder gives.
func (r *LockRequest) Meta() string {
	plain := r.plain()
	return plain.Meta()
}

// Join makes one lock of parts in several groups of masters.
func Join(r *LockRequest, parts []*Part, done LockDone) {
	plain := r.plain()
	lease.Join(&plain, parts, done)
}

// DescribeWait is a request that waits until end.
func DescribeWait(r *LockRequest, keys []Key, place int, end, now time.Duration) Waiting {
	waits := r.waits()
	return wait.Describe(&waits, keys, place, end, now)
}
