// Leases of clients that use the daemon as one Redis. Code written for Redis requests
// leases that no quorum should give, or none at all; the operator's policies decide
// what becomes of it.

package rediscompat

import (
	"fmt"
	"strings"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// maxValueBytes bounds what is written as the value of a lock: tokens of
// libraries carry metadata.
const maxValueBytes = 1024

// leaseOf is a lease of ms, or an error that explains the refusal.
func (h *handlers) leaseOf(ms int64) (time.Duration, error) {
	longest := h.deps.MaxTTL.Milliseconds()
	if h.deps.CompatTest != nil && ms > 0 { // test suites request 1 ms and sleep for 2
		ms = max(ms, arg.MinTTL.Milliseconds())
	}
	switch {
	case ms < arg.MinTTL.Milliseconds():
		return 0, fmt.Errorf("a lease of %d ms is too short, allowed are %d to %d ms", ms, arg.MinTTL.Milliseconds(), longest)
	case ms <= longest:
		return time.Duration(ms) * time.Millisecond, nil
	case h.deps.LongTTL == commands.PolicyClamp:
		return h.deps.MaxTTL, nil
	}
	return 0, fmt.Errorf("a lease of %d ms exceeds max-ttl, allowed are %d to %d ms (--max-ttl, or --long-ttl=clamp to be given the longest)",
		ms, arg.MinTTL.Milliseconds(), longest)
}

// leaseUntil is leaseOf for a point in time, ms since 1970.
func (h *handlers) leaseUntil(end int64) (time.Duration, error) {
	return h.leaseOf(end - time.Now().UnixMilli())
}

// leaseWithoutExpiry is the lease of a request without an expiry.
func (h *handlers) leaseWithoutExpiry() (time.Duration, error) {
	switch h.deps.NoTTL {
	case commands.PolicyLease:
		return h.deps.MaxTTL, nil
	case commands.PolicyAllow:
		return redlock.Endless, nil
	}
	return 0, fmt.Errorf("a lock without an expiry is refused: its holder may die; give a lease, or see --no-ttl (lease: it lasts %d ms)", h.deps.MaxTTL.Milliseconds())
}

// parseValue checks the value of a lock. It is a secret as tokens are.
func parseValue(s string) (redlock.Token, error) {
	if len(s) < 1 || len(s) > maxValueBytes {
		return "", fmt.Errorf("a lock's value of %d bytes is refused, allowed are 1 to %d", len(s), maxValueBytes)
	}
	return redlock.Token(s), nil
}

// mayForce reports whether the client may take locks from others, and refuses if not.
func mayForce(c *commands.Call) bool {
	if c.May(access.CategoryForce) {
		return true
	}
	c.Reply(commands.Error("NOPERM", "this user has no permissions to run the '"+strings.ToLower(commands.Clip(c.Args[0], commands.MaxCommandName))+"' command on a lock regardless of its holder (category force); with the holder's value: DELEX key IFEQ value, SET key value PX ms IFEQ value"))
	return false
}
