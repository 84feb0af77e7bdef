// Group is the lanes of one database: their states, their common clock and their queues.

package pool

import (
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/pool/clock"
	"redlockd/pool/notify"
	"redlockd/pool/wire"
)

// Group is the lanes to all masters for one database. One lock guards all of
// their queues, so that operations have the same order on every master and
// fence proposals rise in that order.
type Group struct {
	pool    *Pool
	db      int
	sealKey string

	ready chan struct{} // closed once the clocks of a quorum were known

	mu       sync.Mutex
	lanes    []*lane // by index; replaced as a whole, see follow.go
	epoch    groupEpoch
	hybrid   clock.Hybrid
	offset   int64 // µs: the group's clock is the median of its masters' clocks
	clocked  bool  // offset is known
	beat     Timer
	counters Counters
	closed   bool
	dialing  sync.WaitGroup

	recordsRead  chan struct{} // closed once the records of a quorum were read, see records.go
	recordsKnown bool          // it is closed

	Keys        notify.Keys                        // watchers of keys
	Events      notify.Events                      // messages of other daemons about locks
	Daemons     notify.Events                      // and about themselves
	repeated    atomic.Pointer[func() []Operation] // see OnReconnect
	heartbeatAt time.Duration                      // time of the last heartbeat, or of the start
}

func newGroup(p *Pool, db int) *Group {
	o := &p.options
	config := notify.Config{Masters: p.Masters(), DB: db, Clock: o.Clock, Logger: o.Logger, Timeout: p.options.DialTimeout()}
	g := &Group{
		pool:        p,
		db:          db,
		sealKey:     o.GroupKey("seal"),
		ready:       make(chan struct{}),
		recordsRead: make(chan struct{}),
		Keys:        notify.Keys{Config: config, Dial: p.track, Submit: p.tasks.Submit, MaxQueue: o.MaxQueue, Untracked: p.embedded()},
		// Embedded masters have no other daemon, and a custom Dialer leads to other masters.
		Events: notify.Events{Config: config, Channel: o.KeyPrefix + "redlockd:events:" + strconv.Itoa(db), Carried: !p.embedded() && o.Dialer == nil,
			CountEvery: settingsEvery * heartbeat, Databases: &p.listenedDBs},
		Daemons: notify.Events{Config: config, Channel: o.KeyPrefix + "redlockd:events:daemons", Carried: !p.embedded() && o.Dialer == nil, Databases: new(atomic.Int32)},
	}
	for i, m := range p.Masters() {
		g.lanes = append(g.lanes, newLane(g, i, m))
	}
	return g
}

func (g *Group) start() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range g.lanes {
		l.state, l.since = stateDialing, g.now()
		l.submitDialLocked()
	}
	g.heartbeatAt = g.now()
	g.beat = g.pool.options.Clock.AfterFunc(heartbeat, g.onTimer)
}

// firstDials reports whether the first dial of a master is not over.
func (g *Group) firstDials() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.lanes, func(l *lane) bool { return l.state == stateDialing })
}

// copyClock copies the clock of another database's lanes to the same masters.
func (g *Group) copyClock(other *Group) {
	other.mu.Lock()
	offset, clocked := other.offset, other.clocked
	other.mu.Unlock()
	if clocked {
		g.offset, g.clocked = offset, true
		close(g.ready)
	}
}

func (g *Group) now() time.Duration { return g.pool.options.Clock.Now() }

// medianLocked is the group's clock now, in µs.
func (g *Group) medianLocked(now time.Duration) int64 { return clock.Micros(now) + g.offset }

// tickLocked draws the next fence proposal or register value.
func (g *Group) tickLocked(now time.Duration) int64 { return g.hybrid.Tick(g.medianLocked(now)) }

// updateClockLocked takes the median of the clocks that are known and have no
// anomaly. With fewer than a quorum of them this daemon's own clock carries on from
// the last median.
func (g *Group) updateClockLocked() {
	offsets := make([]int64, 0, maxMasters)
	for _, l := range g.lanes {
		if l.est.Known && l.anomaly == nil {
			offsets = append(offsets, l.est.Offset)
		}
	}
	if len(offsets) < Quorum(len(g.lanes)) {
		return
	}
	g.offset = clock.Median(offsets)
	if !g.clocked {
		g.clocked = true
		close(g.ready)
	}
}

func (g *Group) send(ops []Operation) {
	for _, r := range g.queue(ops) {
		g.answer(r.op, Answer{Lane: r.lane, Reply: wire.Failed(r.err)})
	}
}

// rejected is an operation that a lane does not take.
type rejected struct {
	op   Operation
	lane int
	err  error
}

// queue queues operations on all lanes. A panic of one in its caller must not keep the mutex.
func (g *Group) queue(ops []Operation) (all []rejected) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	for _, op := range ops {
		e := queueEntry{op: op, props: op.Props()}
		if e.props.Sealed {
			e.fence = g.tickLocked(now)
		}
		op.Propose(e.fence, len(g.lanes))
		for _, l := range g.lanes {
			if err := l.queueLocked(e); err != nil {
				all = append(all, rejected{op, l.index, err})
				l.votes.addUncounted([]queueEntry{e})
			}
		}
	}
	for _, l := range g.lanes {
		l.wakeLocked()
	}
	return all
}

// answer passes one answer to its operation. A callback that panics costs its own
// operation, not the lane's others and not the process.
func (g *Group) answer(op Operation, a Answer) {
	defer g.recoverPanic()
	op.Answer(a)
}

// teach is answer for what comes late.
func (g *Group) teach(op Learner, a Answer) {
	defer g.recoverPanic()
	op.Learn(a)
}

func (g *Group) recoverPanic() {
	panicked := recover()
	if panicked == nil {
		return
	}
	g.mu.Lock()
	g.counters.Panics++
	g.mu.Unlock()
	g.pool.options.Logger.Error("callback of an operation panicked; the operation is lost",
		"err", panicked, "stack", string(debug.Stack()))
}

// Push queues an operation on one lane only.
func (g *Group) Push(index int, op Operation) {
	props := op.Props()
	g.mu.Lock()
	err := errLeft
	if index < len(g.lanes) {
		l := g.lanes[index]
		err = l.queueLocked(queueEntry{op: op, props: props})
		l.wakeLocked()
	}
	g.mu.Unlock()
	if err != nil {
		g.answer(op, Answer{Lane: index, Reply: wire.Failed(err)})
	}
}

// RetryRelease makes the lane send a release until the master has answered it, over
// reconnections and restarts, as long as it can matter.
func (g *Group) RetryRelease(index int, d PendingRelease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if index >= len(g.lanes) {
		return
	}
	l := g.lanes[index]
	if l.conn == nil {
		l.pending.keep(d)
		return
	}
	l.queue.push(l.pending.entry(d))
	l.wakeLocked()
}

// onTimer makes every lane verify its master again, with or without traffic.
func (g *Group) onTimer() {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return
	}
	now := g.now()
	stood := now-g.heartbeatAt > maxHeartbeatGap // this process did
	g.heartbeatAt = now
	for _, l := range g.lanes {
		l.voteLog.WriteDue(now)
		if stood && l.state == stateUp {
			l.scheduleRepeatLocked()
		}
		if l.conn != nil && !l.conn.stalled {
			// A release that a master refused (BUSY, LOADING, NOPERM) it may accept by now.
			for _, e := range l.pending.take(maxRefusedRetries) {
				l.queue.push(e)
			}
		}
		if l.conn != nil {
			l.beat = true
			l.wakeLocked()
		}
	}
	stepped := g.resolveAnomaliesLocked(g.now())
	g.beat.Reset(heartbeat)
	g.mu.Unlock()
	stepped.fail(errStepped)
}

// recordsLocked are what is known of the masters' registers, by lane.
func (g *Group) recordsLocked() (all []*peerRecords) {
	for _, l := range g.lanes {
		all = append(all, &l.peerRecords)
	}
	return all
}

// checkRecordsReadLocked lets masters be admitted once the records of a quorum have been
// read and the first dial of every other master is over. A first dial takes a
// master timeout or two at most, and Start waits for it anyway.
func (g *Group) checkRecordsReadLocked() {
	read := 0
	for _, l := range g.lanes {
		switch {
		case l.recordsReadAt > 0:
			read++
		case l.state == stateDialing:
			return
		}
	}
	if read >= Quorum(len(g.lanes)) && !g.recordsKnown {
		g.recordsKnown = true
		close(g.recordsRead)
	}
}

func (g *Group) close() {
	g.mu.Lock()
	for _, l := range g.lanes {
		l.voteLog.Close(g.now())
	}
	g.closed = true
	if g.beat != nil { // not if it was made after the pool had been closed
		g.beat.Stop()
	}
	g.mu.Unlock()
	g.Keys.Close()
	g.Events.Close()
	g.Daemons.Close()
	for _, l := range g.lanes {
		l.close(errClosed)
	}
	g.dialing.Wait()
}
