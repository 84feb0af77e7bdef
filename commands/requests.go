package commands

import (
	"strings"
	"sync/atomic"
)

// Requests count how clients' requests ended, those that only read left out. The ballots by which the
// daemon tries, for waiters and renewals too, are counted in redlock.Counters.
type Requests struct {
	refused, noQuorum, expired atomic.Int64
}

// RequestCounts are a snapshot.
type RequestCounts struct {
	Refused  int64 // lock requests: another client holds the key
	NoQuorum int64
	Expired  int64
}

func (n *Requests) load() (c RequestCounts) {
	if n == nil {
		return c
	}
	return RequestCounts{n.refused.Load(), n.noQuorum.Load(), n.expired.Load()}
}

// note counts a reply that says that a request was not decided, or too late.
func (n *Requests) note(r *Reply) {
	if n == nil || r.Kind != KindError {
		return
	}
	switch code, _, _ := strings.Cut(r.Text, " "); code {
	case "NOQUORUM":
		n.noQuorum.Add(1)
	case "EXPIRED":
		n.expired.Add(1)
	}
}
