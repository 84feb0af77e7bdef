// flush is one write to a master: operations in queue order, then the seal.

package pool

import (
	"fmt"
	"slices"
	"time"

	"redlockd/pool/clock"
	"redlockd/pool/wire"
)

// flush is reused by its connection; its buffers keep their size.
type flush struct {
	exchange

	sealKey  string
	beat     bool // the flush also verifies which process the master is
	embedded bool // … unless that is this one
	raise    int64
	sent     time.Duration
	sealAt   int // index of the seal's first reply, −1 = not sent …
	timeAt   int // … and of its last
	serverAt int // index of INFO server's reply, −1 = not sent
	// minRegister is what the master's own register cannot be below.
	minRegister int64
	readings

	scripts  []string
	lost     bool // the master no longer has the scripts
	loads    bool // the flush loads them first
	distant  bool // others may be sent, or be settled, while it is under way
	answered bool // its replies have come
}

// reset empties the flush. The context names the master's memory.
func (f *flush) reset() {
	f.exchange.reset()
	f.beat, f.sealAt, f.minRegister = false, -1, 0
	f.lost, f.answered = false, false
	f.readings.reset()
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
	if f.loads {
		for _, text := range f.scripts {
			f.next().Set("SCRIPT", "LOAD", text)
		}
	}
	f.writeOperations()
	f.serverAt = -1
	if f.beat && !f.embedded {
		f.serverAt = len(f.commands)
		f.next().Set("INFO", "server")
		if f.readSettings {
			f.appendReadings()
		}
	}
	if f.sealed || f.beat {
		f.seal()
	}
}

// exchangeOn sends the flush and reads its replies, with nothing else under way.
func (f *flush) exchangeOn(link Link) {
	if len(f.commands) > 0 {
		f.replies = link.Exchange(f.commands, f.replies)
	}
}

// seal appends the verification. It stands last: a check before a command proves
// nothing about what happened after the check. A heartbeat without operations
// reads the register and does not raise it: there is no fence to make room
// for, and a durable master would pay for a write. CH has the master say whether it
// raised the register: where the network splits a flush, others may write the seal in between.
func (f *flush) seal() {
	f.sealAt = len(f.commands)
	key, identity := f.sealKey, f.context.Incarnation.Identity
	f.next().Set("ZSCORE", key, identity)
	if f.sealed {
		f.next().Set("ZADD", key, "XX", "GT", "CH", f.context.Decimal(f.raise), identity)
	}
	f.timeAt = len(f.commands)
	f.next().Set("TIME")
}

// brokenLink is the error of a connection that ended during the flush. It notes whether the
// master has lost its scripts, by SCRIPT FLUSH. If they are lost once more behind their loading,
// the connection ends.
func (f *flush) brokenLink() error {
	for i := range f.replies {
		if err := f.replies[i].Err; err != nil {
			refusal, fromMaster := err.(MasterError)
			if !fromMaster {
				return err
			}
			f.lost = f.lost || !f.loads && refusal.Begins("NOSCRIPT")
		}
	}
	if len(f.commands) != 0 && len(f.replies) != len(f.commands) {
		return errUnexpectedSeal
	}
	return f.unexpectedBulk()
}

// endingReply is an error reply that ends the connection: the scripts are lost again, or
// the master has become a replica. A new admission settles both.
func (f *flush) endingReply() error {
	ending := func(r Reply) bool { return !f.lost && r.Begins("NOSCRIPT") || r.Begins("READONLY") }
	for _, r := range f.replies {
		if ending(r) {
			return r.Err
		}
		if i := slices.IndexFunc(r.Items, ending); i >= 0 { // of one operation of a bulk
			return r.Items[i].Err
		}
	}
	return nil
}

// readSeal returns the register before the flush and the master's clock after it.
func (f *flush) readSeal() (old, us int64, err error) {
	if f.serverAt >= 0 {
		server := f.replies[f.serverAt]
		if server.Err != nil { // LOADING, BUSY …
			return 0, 0, server.Err
		}
		if run := wire.InfoField(server.Str, "run_id"); run != f.context.Incarnation.RunID {
			return 0, 0, errBalanced
		}
	}
	score := f.replies[f.sealAt]
	if score.Kind == ReplyNil {
		return 0, 0, errMemoryGone
	}
	// Only a new admission finds out what the data is and what the operator can do.
	if score.Begins("WRONGTYPE") {
		return 0, 0, fmt.Errorf("%w: %w", errForeign, score.Err)
	}
	time := f.replies[f.timeAt]
	old, ok := score.Number()
	us, isTime := wire.ParseTime(time)
	if !ok || !isTime {
		return 0, 0, fmt.Errorf("%w: %s", errUnexpectedSeal, wire.FirstError(score, time))
	}
	return old, us, nil
}

func (f *flush) checkRegister(old int64) error {
	if old < f.minRegister {
		return fmt.Errorf("%w: register %d, but %d was acknowledged", errRolledBack, old, f.minRegister)
	}
	if old > MaxRegister {
		return fmt.Errorf("%w: %d is above 2^52; stop all daemons, delete %s on this master, start again", errDamaged, old, f.sealKey)
	}
	return nil
}

// estimateBehind reports that a flush was late only because the estimate of the master's
// clock was behind when it was sent, by more than a quarter of the timeout. It would stay
// so: late flushes do not update the estimate, and it may be off within its own error
// after this process was suspended. Admission measures the clock anew.
func (f *flush) estimateBehind(limit, now time.Duration) bool {
	us, _ := wire.ParseTime(f.replies[f.timeAt])
	return now-f.sent <= limit && us-clock.Micros(now-f.sent) > f.context.Time+clock.Micros(limit)/4
}
