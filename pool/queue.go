// Queue of a lane: the operations that wait for the next flush to a master.

package pool

import "time"

// maxIdleQueue is for how many entries an idle queue keeps memory.
const maxIdleQueue = 4096

// queueLocked queues an operation, or returns why this master does not receive it.
func (l *lane) queueLocked(e queueEntry) error {
	switch {
	case l.group.closed:
		return errClosed
	case len(l.queue) >= l.group.pool.options.MaxQueue:
		return errQueueFull
	case e.props.startsNew() && l.drained() != 0:
		return errDrained
	case l.state == stateUp, l.state == stateDialing && l.group.clocked:
		l.appendLocked(e)
		return nil
	}
	if l.cause == nil {
		return errNoClocks
	}
	return l.cause
}

// drained is since when the lane's master is being drained, 0 = it is not.
func (l *lane) drained() time.Duration {
	return time.Duration(l.group.pool.drained[l.index].Load())
}

// appendLocked queues at the end of the buffer. When that is reached and half of
// the buffer is free at its front, the queue moves there: with more queued than a
// flush holds, a third of all memory was spent on new buffers.
func (l *lane) appendLocked(e queueEntry) {
	n, full := len(l.queue), cap(l.queue)
	if n == full && 2*n <= cap(l.buffer) {
		moved := l.buffer[:n]
		copy(moved, l.queue)
		clear(l.queue)
		l.queue, full = moved, cap(moved)
	}
	l.queue = append(l.queue, e)
	if cap(l.queue) != full {
		l.buffer = l.queue[:0]
	}
}

// queuePendingFirstLocked queues the pending releases in front of everything else.
func (l *lane) queuePendingFirstLocked() {
	l.swapQueueLocked(append(l.takePendingLocked(len(l.pending)), l.queue...))
}

// swapQueueLocked returns the queue, with its memory, and replaces it by
// another one.
func (l *lane) swapQueueLocked(next []queueEntry) []queueEntry {
	queued := l.queue
	l.queue, l.buffer = next, nil
	return queued
}

// dequeueLocked drops the first n entries. A queue that has been emptied starts
// again at the front of its buffer; one that has not is only resliced.
func (l *lane) dequeueLocked(n int) {
	clear(l.queue[:n])
	if n < len(l.queue) {
		l.queue = l.queue[n:]
		return
	}
	if cap(l.buffer) > maxIdleQueue { // a storm is over: its memory may be freed
		l.buffer = nil
	}
	l.queue = l.buffer[:0]
}

// addUncounted adds operations whose outcome is unknown, or that were not sent.
func (v *votes) addUncounted(entries []queueEntry) {
	var n Votes
	for i := range entries {
		if entries[i].props.Exclusive {
			n.Uncounted++
		}
	}
	v.add(n)
}
