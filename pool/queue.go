// Queue of a lane: the operations that wait for the next flush to a master.

package pool

// maxIdleQueue bounds the entries for which an idle queue keeps memory.
const maxIdleQueue = 4096

type queueEntry struct {
	op    Operation
	props Props
	fence int64 // its proposal, 0 without one
}

// queue is guarded like its lane. The zero value is empty.
type queue struct {
	entries []queueEntry
	buffer  []queueEntry // the memory that the entries are a part of, from its front
}

// push adds an entry at the end of the buffer. When that is reached and half of
// the buffer is free at its front, the entries move there: with more queued than a
// flush holds, a third of all memory was spent on new buffers.
func (q *queue) push(e queueEntry) {
	n, full := len(q.entries), cap(q.entries)
	if n == full && 2*n <= cap(q.buffer) {
		moved := q.buffer[:n]
		copy(moved, q.entries)
		clear(q.entries)
		q.entries, full = moved, cap(moved)
	}
	q.entries = append(q.entries, e)
	if cap(q.entries) != full {
		q.buffer = q.entries[:0]
	}
}

// pushFirst adds entries in front of all others.
func (q *queue) pushFirst(entries []queueEntry) {
	if len(entries) > 0 {
		*q = queue{entries: append(entries[:len(entries):len(entries)], q.entries...)}
	}
}

// take removes all entries and returns them, with their memory.
func (q *queue) take() []queueEntry {
	taken := q.entries
	*q = queue{}
	return taken
}

// drop removes the first n entries. A queue that has been emptied starts again at the
// front of its buffer; one that has not is only resliced.
func (q *queue) drop(n int) {
	clear(q.entries[:n])
	if n < len(q.entries) {
		q.entries = q.entries[n:]
		return
	}
	if cap(q.buffer) > maxIdleQueue { // a storm is over: its memory may be freed
		q.buffer = nil
	}
	q.entries = q.buffer[:0]
}
