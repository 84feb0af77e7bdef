package lease

import (
	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/events"
)

// New returns the leases of a daemon. lockInfo notes every holder, not only those that
// give META.
func New(e *engine.Engine, v *events.Events, tokens func() engine.Token, lockInfo bool) *Leases {
	seed, records := fnv1a(fnvBasis, string(tokens())), newLeaseRecords(e.MaxTTL)
	options := &ofDaemon{turns: slotTurns{seed: seed}, notes: notes{e, records, pool.DaemonName(), lockInfo}}
	return &Leases{
		engine: e, tokens: tokens, records: records, hot: &hotKeys{seed: seed, lists: map[uint32][]*acquireCall{}},
		refusals: &refusals{engine: e, seed: seed}, exclusive: exclusive, ofOptions: options,
		observers: []observer{listeners{v}, &options.notes}, kinds: copyKinds{e.Scripts},
	}
}
