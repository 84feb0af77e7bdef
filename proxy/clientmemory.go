package proxy

// clientmemory.go counts one client's memory against the limit of all clients:
// incomplete commands, commands and replies in the reply queue, messages, subscriptions
// and tracked keys. The count is coarse, so that a client that sends little and reads its
// replies never locks the limit.

import "unsafe"

const (
	// freeMemory of each client is not counted: as much as an idle connection takes.
	freeMemory = 16 << 10
	memoryStep = 16 << 10
	// pendingMemory is what a command takes in the reply queue beside its bytes.
	pendingMemory = int(unsafe.Sizeof(pendingReply{}))
)

// updateMemoryLocked keeps the reservation up to date. It shrinks the reservation when that
// is twice too large, so that a client whose size varies does not change it each time.
func (s *session) updateMemoryLocked() {
	size := s.input + s.waiting*pendingMemory + s.unwritten + s.subscribed + s.tracked + s.buffered
	switch {
	case size <= freeMemory:
		size = 0
	case size > s.reserved || size < s.reserved/2:
		size = (size + memoryStep - 1) / memoryStep * memoryStep
	default:
		return
	}
	if size != s.reserved {
		s.reserveLocked(size)
	}
}

func (s *session) reserveLocked(size int) {
	s.reserved = size
	if !s.memory.resize(s.owner, size) {
		s.dropped, s.next = true, nil
		s.evicted()
	}
}

// SetBuffered implements guard.Events: the bytes of the incomplete command in the guard.
func (s *session) SetBuffered(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buffered = bytes
	s.updateMemoryLocked()
}

// evicted closes the connection because its reservation was evicted. It takes no lock: the
// caller may hold another session's.
func (s *session) evicted() {
	s.server.counters.evicted.Add(1)
	s.server.rareLog.Warn("client memory limit reached; largest connection closed", "client", s.client.Addr,
		"max-memory-clients", s.options.ClientMemory, "hint", "one user may have half of it; raise max-memory-clients if clients need more")
	s.server.writers.wake(func() { s.guard.Close() })
}
