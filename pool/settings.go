// Settings of a master that an operator may have changed since its admission. Once a
// second each flush reads the settings on which the admission relied. One that has changed
// ends the connection: the next admission refuses, or clears the durable bit.

package pool

import (
	"fmt"

	"redlockd/pool/admission"
	"redlockd/pool/wire"
)

// settingsEvery is how many heartbeats lie between two readings: CONFIG GET with a
// pattern costs a master some ten microseconds.
const settingsEvery = 10

// appendSettings appends the commands that read the settings.
func (f *flush) appendSettings() {
	f.settingsAt = len(f.commands)
	f.next().Set("CONFIG", "GET", "*append*")
	f.next().Set("INFO", "persistence")
	f.next().Set("CONFIG", "GET", "maxmemory-policy")
	f.next().Set("INFO", "stats")
	f.listenersAt = -1
	if g := f.conn.lane.group; g.Events.Counts() {
		f.listenersAt = len(f.commands)
		f.next().Set("PUBSUB", "NUMSUB", g.Events.Channel)
	}
}

// settingsChanged reports whether the answers contradict the settings of the
// admission. Where CONFIG is forbidden there is nothing to compare.
func (f *flush) settingsChanged() error {
	if f.settingsAt < 0 {
		return nil
	}
	if l := f.conn.lane; f.listenersAt >= 0 {
		l.group.Events.Count(l.index, f.replies[f.listenersAt], f.sent)
	}
	settings, info := f.replies[f.settingsAt], f.replies[f.settingsAt+1]
	if f.conn.incarnation.Durable && settings.Err == nil && info.Err == nil && admission.Volatile(settings, info.Str) != "" {
		return errSettings
	}
	return nil
}

// evictedLocked reports whether keys may have been lost since the admission although the
// seal is still there. Where CONFIG is forbidden the policy is read at admissions
// only, and the count alone decides.
func (f *flush) evictedLocked() error {
	l := f.conn.lane
	if f.settingsAt < 0 {
		return nil
	}
	policy, stats := f.replies[f.settingsAt+2], f.replies[f.settingsAt+3]
	if policy.Err == nil && len(policy.Items) == 2 && policy.Items[1].Str != "noeviction" {
		return fmt.Errorf("%w: maxmemory-policy is %s, it must be noeviction", errEvicted, policy.Items[1].Str)
	}
	if stats.Err != nil {
		return nil
	}
	if now, was := wire.InfoField(stats.Str, "evicted_keys"), f.conn.incarnation.Evicted; now != was {
		return fmt.Errorf("%w: evicted_keys is %s, and was %s at its admission; keep maxmemory-policy noeviction", errEvicted, now, was)
	}
	return l.statsResetLocked(admission.Processed(stats.Str))
}

// statsResetLocked stores the number of commands that a server counts, which falls by
// CONFIG RESETSTAT alone. The reset may hide an eviction.
func (l *lane) statsResetLocked(commands int64) error {
	was := l.commands
	l.commands = commands
	if commands < was {
		return fmt.Errorf("%w: CONFIG RESETSTAT erased the count; do not reset the statistics of a master", errEvicted)
	}
	return nil
}
