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

func (rs *Requests) load() (c RequestCounts) {
	if rs == nil {
		return c
	}
	return RequestCounts{rs.refused.Load(), rs.noQuorum.Load(), rs.expired.Load()}
}

// note counts a reply that says that a request was not decided, or too late.
func (rs *Requests) note(r *Reply) {
	if rs == nil || r.Kind != KindError {
		return
	}
	switch code, _, _ := strings.Cut(r.Text, " "); code {
	case "NOQUORUM":
		rs.noQuorum.Add(1)
	case "EXPIRED":
		rs.expired.Add(1)
	}
}
