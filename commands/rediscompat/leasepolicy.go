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
	"redlockd/commands/dropin"
	"redlockd/redlock"
)

// maxValueBytes bounds what is written as the value of a lock: tokens of
// libraries carry metadata.
const maxValueBytes = 1024

// handlers serve the commands of this package.
type handlers struct {
	leasePolicy
	deps    commands.Deps
	scripts scriptCache
	probes  prober
	fences  fences
	nextIDs nextIDs
}

// leasePolicy applies --max-ttl, --long-ttl and --no-ttl.
type leasePolicy struct{ deps *commands.Deps }

// lease is a lease of ms, or an error that explains the refusal.
func (p leasePolicy) lease(ms int64) (time.Duration, error) {
	least, longest := arg.MinTTL.Milliseconds(), p.deps.MaxTTL.Milliseconds()
	if p.deps.CompatTest && ms > 0 { // test suites request 1 ms and sleep for 2
		ms = max(ms, least)
	}
	switch {
	case ms < least:
		return 0, fmt.Errorf("a lease of %d ms is too short, allowed are %d to %d ms", ms, least, longest)
	case ms <= longest:
		return time.Duration(ms) * time.Millisecond, nil
	case p.deps.LongTTL == commands.PolicyClamp:
		return p.deps.MaxTTL, nil
	}
	return 0, fmt.Errorf("a lease of %d ms exceeds max-ttl, allowed are %d to %d ms (--max-ttl, or --long-ttl=clamp to be given the longest)", ms, least, longest)
}

// newLease is the lease that ms gives a lock that is held. The least time a lock can be taken for ends
// one soon enough: refused, it would stay as long as it was.
func (p leasePolicy) newLease(ms int64) (time.Duration, error) {
	return p.lease(max(ms, arg.MinTTL.Milliseconds()))
}

// leaseUntil is the lease up to an expiry, by lease or newLease.
func (p leasePolicy) leaseUntil(e dropin.Expiry, lease func(ms int64) (time.Duration, error)) (time.Duration, error) {
	switch e.Kind {
	case dropin.After:
		return lease(e.MS)
	case dropin.At:
		return lease(e.MS - time.Now().UnixMilli())
	}
	return p.withoutExpiry()
}

// withoutExpiry is the lease of a request without an expiry.
func (p leasePolicy) withoutExpiry() (time.Duration, error) {
	switch p.deps.NoTTL {
	case commands.PolicyLease:
		return p.deps.MaxTTL, nil
	case commands.PolicyAllow:
		return redlock.Endless, nil
	}
	return 0, fmt.Errorf("a lock without an expiry is refused: its holder may die; give a lease, or see --no-ttl (lease: it lasts %d ms)", p.deps.MaxTTL.Milliseconds())
}

// withinHold shortens the lease of a request to the longest time of a hold where longer leases are shortened, or
// returns an error that explains the refusal: its client learns of no other time than that it has requested.
func (p leasePolicy) withinHold(r *redlock.LockRequest, longest time.Duration) error {
	if longest == 0 || r.TTL <= longest {
		return nil
	}
	if p.deps.LongTTL != commands.PolicyClamp {
		return fmt.Errorf("a lease of %d ms is longer than a lock may be held, allowed are %d ms (--max-hold, or max-hold in the users file; or --long-ttl=clamp to be given the longest)",
			r.TTL.Milliseconds(), longest.Milliseconds())
	}
	r.TTL = longest
	return nil
}

// endlessToo reports whether keys without an expiry are locks: where such locks are allowed.
func (p leasePolicy) endlessToo() bool { return p.deps.NoTTL == commands.PolicyAllow }

// valuedRequest is a request for a lock whose token is a value, which is a secret as tokens are.
func valuedRequest(c *commands.Call, name, value string) (redlock.LockRequest, error) {
	key, err := arg.ParseKey(name)
	if err == nil && (len(value) < 1 || len(value) > maxValueBytes) {
		err = fmt.Errorf("a lock's value of %d bytes is refused, allowed are 1 to %d", len(value), maxValueBytes)
	}
	return redlock.LockRequest{DB: c.Client.DB, Key: key, Token: redlock.Token(value), Mode: redlock.Valued}, err
}

// mayForce reports whether the client may take locks from others, and refuses if not.
func mayForce(c *commands.Call) bool {
	if c.May(access.CategoryForce) {
		return true
	}
	c.Reply(commands.Error("NOPERM", "this user has no permissions to run the '"+strings.ToLower(commands.Clip(c.Args[0], commands.MaxCommandName))+"' command on a lock regardless of its holder (category force); with the holder's value: DELEX key IFEQ value, SET key value PX ms IFEQ value"))
	return false
}
