// Readings: what a flush reads of its master once a second, besides the seal.
//
// An operator may change settings on which the admission relied. One that has changed
// ends the connection: the next admission refuses, or clears the durable bit.

package pool

import (
	"fmt"
	"strconv"

	"redlockd/pool/admission"
	"redlockd/pool/wire"
)

// settingsEvery is the number of heartbeats between two readings: CONFIG GET with a
// pattern costs a master some ten microseconds.
const settingsEvery = 10

// readings are planned before the flush is written. Indexes are those of replies, −1 = not sent.
type readings struct {
	readSettings bool
	channel      string // of events, whose listeners are counted; "" = they are not
	readDaemons  bool   // the connections of daemons
	// newRecords is what the flush stores on the master about the others, recordsOf the masters
	// about which it reads the master's records: see records.go.
	recordsKey string
	newRecords []record
	recordsOf  []*peerRecords

	settingsAt, listenersAt, daemonsAt int // of the first reply
	recordsWrittenAt, recordsReadAt    int
}

func (r *readings) reset() {
	*r = readings{newRecords: r.newRecords[:0], settingsAt: -1, listenersAt: -1, daemonsAt: -1, recordsWrittenAt: -1, recordsReadAt: -1}
}

func (f *flush) appendReadings() {
	f.settingsAt = len(f.commands)
	f.next().Set("CONFIG", "GET", "*append*")
	f.next().Set("INFO", "persistence")
	f.next().Set("CONFIG", "GET", "maxmemory-policy")
	f.next().Set("INFO", "stats")
	if f.channel != "" {
		f.listenersAt = len(f.commands)
		f.next().Set("PUBSUB", "NUMSUB", f.channel)
	}
	if f.readDaemons {
		f.daemonsAt = len(f.commands)
		f.next().Set("CLIENT", "LIST", "TYPE", "normal")
	}
	if len(f.newRecords) > 0 {
		f.recordsWrittenAt = len(f.commands)
		c := f.next()
		c.Set("ZADD", f.recordsKey, "GT")
		for _, r := range f.newRecords {
			c.Args = append(c.Args, strconv.FormatInt(r.score, 10), r.member)
		}
	}
	if len(f.recordsOf) > 0 {
		f.recordsReadAt = len(f.commands)
		f.commands = append(f.commands, recordQueries(f.recordsOf)...)
	}
}

// settingsChanged reports whether the answers contradict the settings of the
// admission. Where CONFIG is forbidden there is nothing to compare.
func (f *flush) settingsChanged() error {
	if f.settingsAt < 0 {
		return nil
	}
	settings, info := f.replies[f.settingsAt], f.replies[f.settingsAt+1]
	if f.context.Incarnation.Durable && settings.Err == nil && info.Err == nil && admission.Volatile(settings, info.Str) != "" {
		return errSettings
	}
	return nil
}

// evicted reports whether keys may have been lost since the admission although the
// seal is still there. Where CONFIG is forbidden the policy is read at admissions
// only, and the count alone decides. commands is how many the server had counted at the last
// reading.
func (f *flush) evicted(commands *int64) error {
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
	if now, was := wire.InfoField(stats.Str, "evicted_keys"), f.context.Incarnation.Evicted; now != was {
		return fmt.Errorf("%w: evicted_keys is %s, and was %s at its admission; keep maxmemory-policy noeviction", errEvicted, now, was)
	}
	return statsReset(commands, admission.Processed(stats.Str))
}

// statsReset stores the number of commands that a server counts, which falls by
// CONFIG RESETSTAT alone. The reset may hide an eviction.
func statsReset(commands *int64, now int64) error {
	was := *commands
	*commands = now
	if now < was {
		return fmt.Errorf("%w: CONFIG RESETSTAT erased the count; do not reset the statistics of a master", errEvicted)
	}
	return nil
}

// minDaemonsEvery is the least number of readings of settings between two readings of a list. With
// more daemons it is their number: all together read a master's list once a second at most.
const minDaemonsEvery = 10

// daemonsDue is how many readings of settings come before the next one of the connections that a
// master lists; -1 = there is none. So each daemon shows which daemons follow a change of the group
// and which do not. One that is refused shows, too: it keeps its last connection until it dials again.
type daemonsDue int

// next reports whether a reading of settings reads the list, too.
func (d *daemonsDue) next() bool {
	if *d > 0 {
		*d--
		return false
	}
	return *d == 0
}

// read returns the daemons of a group in the list. After an error, as without the right, the list is not read again.
func (d *daemonsDue) read(list Reply, group string) (all []Daemon, ok bool) {
	if *d = -1; list.Err != nil {
		return nil, false
	}
	all = admission.DaemonsOf(list.Str, group)
	*d = daemonsDue(max(minDaemonsEvery, len(all)))
	return all, true
}
