// flush is one write to a master: operations in queue order, then the seal.

package pool

import "time"

// flush is reused by its connection; its buffers keep their size.
type flush struct {
	conn *connection
	exchange

	beat     bool // the flush also verifies which process the master is
	raise    int64
	sent     time.Duration
	sealAt   int // index of the seal's first reply, −1 = not sent …
	timeAt   int // … and of its last
	serverAt int // index of INFO server's reply, −1 = not sent
	// settingsAt is the index of the first reply about settings, −1 = not sent.
	settingsAt   int
	daemonsAt    int // likewise about the connections of daemons
	readSettings bool
	// newRecords is what the flush stores on the master about the others, readRecords that
	// it reads the master's records, minRegister what the master's own register cannot be
	// below: see records.go.
	newRecords                      []record
	recordLanes                     []*lane // that the records read are about
	readRecords                     bool
	recordsWrittenAt, recordsReadAt int // −1 = not sent
	minRegister                     int64
	// listenersAt is the index of the reply that counts listeners to events, −1 = not sent.
	listenersAt int
}

func (f *flush) reset(c *connection) {
	f.conn = c
	f.exchange.reset()
	f.beat, f.sealAt = false, -1
	f.newRecords, f.readRecords, f.minRegister = f.newRecords[:0], false, 0
	f.context.Lane, f.context.Incarnation, f.context.ConnectedAt = c.lane.index, c.incarnation, c.connectedAt
}

// leftBehind is the proposal of the first operation that this flush leaves in
// the queue, 0 if there is none. The flush raises the register to just below it
// instead of to the clock: otherwise every operation left behind would find
// the register above its own proposal and need a second seal.
func (f *flush) leftBehind(queue []queueEntry) int64 {
	for i := range queue {
		if fence := queue[i].fence; fence > 0 {
			return fence
		}
	}
	return 0
}

// write turns entries into commands, outside of the lock.
func (f *flush) write() {
	f.writeOperations()
	f.serverAt, f.settingsAt, f.daemonsAt, f.recordsWrittenAt, f.recordsReadAt = -1, -1, -1, -1, -1
	if f.beat && !f.conn.lane.group.pool.embedded() {
		f.serverAt = len(f.commands)
		f.next().Set("INFO", "server")
		if f.readSettings {
			f.appendSettings()
			f.appendDaemons()
			f.appendRecords()
		}
	}
	if f.sealed || f.beat {
		f.seal()
	}
}

// seal appends the verification. It stands last: a check before a command proves
// nothing about what happened after the check. A heartbeat without operations
// reads the register and does not raise it: there is no fence to make room
// for, and a durable master would pay for a write.
func (f *flush) seal() {
	f.sealAt = len(f.commands)
	key, identity := f.conn.lane.group.sealKey, f.conn.incarnation.Identity
	f.next().Set("ZSCORE", key, identity)
	if f.sealed {
		f.next().Set("ZADD", key, "XX", "GT", f.context.Decimal(f.raise), identity)
	}
	f.timeAt = len(f.commands)
	f.next().Set("TIME")
}
