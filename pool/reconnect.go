// Reconnects: commands that a master receives again when it answers again.
//
// Some of what the masters store lasts only as long as it is repeated. A repetition while
// a master is away does not reach it, and the next one may be long in coming. So the
// operations are repeated at once when a master is back: when it has been admitted, when it
// answers after a pause, and when this process stood still itself, which is as if all
// masters had been away.

package pool

// maxHeartbeatGap is the time between two heartbeats above which this process stood still:
// less than repeated data lasts, and more than a busy machine takes.
const maxHeartbeatGap = 10 * heartbeat

// OnReconnect sets the function that is called whenever a master is back; there is one at
// a time. It is called without a lock, from several goroutines, and returns what that
// master must receive again: operations that are not Sealed. Each goes to this one
// master, in front of everything that is queued for it from then on.
func (g *Group) OnReconnect(operations func() []Operation) {
	g.repeated.Store(&operations)
}

// reconnectEntries returns what a master that is back must receive. Operations that do not
// fit into a queue are left to their next repetition.
func (g *Group) reconnectEntries() (out []queueEntry) {
	defer g.recoverPanic()
	operations := g.repeated.Load()
	if operations == nil {
		return nil
	}
	for _, op := range (*operations)() {
		if len(out) == g.pool.options.MaxQueue {
			break
		}
		out = append(out, queueEntry{op: op, props: op.Props()})
	}
	return out
}

// scheduleRepeatLocked submits a task that repeats the operations: this method must not,
// because their source has locks of its own.
func (l *lane) scheduleRepeatLocked() {
	if l.group.repeated.Load() != nil && !l.repeating {
		l.repeating = l.group.pool.tasks.Submit(l.repeat) == nil
	}
}

func (l *lane) repeat() {
	g := l.group
	g.mu.Lock()
	l.repeating = false
	g.mu.Unlock()
	entries := g.reconnectEntries()
	g.mu.Lock()
	defer g.mu.Unlock()
	if l.state != stateUp { // it has stopped again, and will be back
		return
	}
	l.queue.pushFirst(entries)
	l.wakeLocked()
}
