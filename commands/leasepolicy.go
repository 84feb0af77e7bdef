// Leases of clients that use the daemon as one Redis. Code written for Redis requests
// leases that no quorum should give, or none at all; the operator's policies decide
// what becomes of it.

package commands

import (
	"fmt"
	"strings"
	"time"

	"redlockd/commands/access"
	"redlockd/redlock"
)

// maxValueBytes bounds what is written as the value of a lock: tokens of
// libraries carry metadata.
const maxValueBytes = 1024

// leaseOf is a lease of ms, or an error that explains the refusal.
func (t *Table) leaseOf(ms int64) (time.Duration, error) {
	longest := t.deps.MaxTTL.Milliseconds()
	if t.deps.CompatTest != nil && ms > 0 { // test suites request 1 ms and sleep for 2
		ms = max(ms, minTTL.Milliseconds())
	}
	switch {
	case ms < minTTL.Milliseconds():
		return 0, fmt.Errorf("a lease of %d ms is too short, allowed are %d to %d ms", ms, minTTL.Milliseconds(), longest)
	case ms <= longest:
		return time.Duration(ms) * time.Millisecond, nil
	case t.deps.LongTTL == PolicyClamp:
		return t.deps.MaxTTL, nil
	}
	return 0, fmt.Errorf("a lease of %d ms exceeds max-ttl, allowed are %d to %d ms (--max-ttl, or --long-ttl=clamp to be given the longest)",
		ms, minTTL.Milliseconds(), longest)
}

// leaseUntil is leaseOf for a point in time, ms since 1970.
func (t *Table) leaseUntil(end int64) (time.Duration, error) {
	return t.leaseOf(end - time.Now().UnixMilli())
}

// leaseWithoutExpiry is the lease of a request without an expiry.
func (t *Table) leaseWithoutExpiry() (time.Duration, error) {
	switch t.deps.NoTTL {
	case PolicyLease:
		return t.deps.MaxTTL, nil
	case PolicyAllow:
		return redlock.Endless, nil
	}
	return 0, fmt.Errorf("a lock without an expiry is refused: its holder may die; give a lease, or see --no-ttl (lease: it lasts %d ms)", t.deps.MaxTTL.Milliseconds())
}

// parseValue checks the value of a lock. It is a secret as tokens are.
func parseValue(s string) (redlock.Token, error) {
	if len(s) < 1 || len(s) > maxValueBytes {
		return "", fmt.Errorf("a lock's value of %d bytes is refused, allowed are 1 to %d", len(s), maxValueBytes)
	}
	return redlock.Token(s), nil
}

// mayForce reports whether the client may take locks from others, and refuses if not.
func mayForce(c *Call) bool {
	if c.May(access.CategoryForce) {
		return true
	}
	c.Reply(Error("NOPERM", "this user has no permissions to run the '"+strings.ToLower(clip(c.Args[0], maxCommandName))+"' command on a lock regardless of its holder (category force); with the holder's value: DELEX key IFEQ value, SET key value PX ms IFEQ value"))
	return false
}
