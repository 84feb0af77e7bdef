package proxy

// buffer.go stores the bytes of a command until it is complete: in a pooled medium buffer
// while they fit, and in none while there are none. An unauthenticated client gets a small
// buffer, and larger ones only from the memory limit.

import (
	"sync"
	"time"
)

const (
	mediumBufSize = 8 << 10 // holds what a read can add to a command that fits redcon's buffer
	smallBufSize  = 2 << 10 // holds every honest login: names and passwords have some hundred bytes
	// largeBufSize holds the longest unauthenticated command and the bytes that exceed it.
	largeBufSize = maxUnauthCommand + smallBufSize
)

// bufferPools are the buffers that all guards of a server share, and their limits.
type bufferPools struct {
	medium sync.Pool // of *[mediumBufSize]byte
	small  sync.Pool // of *[smallBufSize]byte
	large  sync.Pool // of *[largeBufSize]byte
	limit  memLimit
	turns  rateLimiter
}

// open makes the pools ready; unauth is the memory limit of unauthenticated clients in bytes.
func (s *bufferPools) open(unauth int) {
	s.medium.New = func() any { return new([mediumBufSize]byte) }
	s.small.New = func() any { return new([smallBufSize]byte) }
	s.large.New = func() any { return new([largeBufSize]byte) }
	s.limit.max = unauth
	s.turns.rate, s.turns.now = perSecond(turnsPerSecond, turnBurst), time.Now
}

// buffer stores bytes from the socket. buf never holds more than one incomplete command
// and one read, since nothing is read while buf holds a complete one.
func (g *guardConn) buffer(p []byte) {
	if len(p) == 0 {
		return
	}
	if g.buf == nil {
		g.mediumBuf = g.pools.medium.Get().(*[mediumBufSize]byte)
		g.buf = g.mediumBuf[:0]
	}
	g.compact()
	before := cap(g.buf)
	g.buf = append(g.buf, p...)
	if cap(g.buf) != before { // append has reallocated it
		g.returnBuffers()
		g.reportBuffered(cap(g.buf))
	}
}

// reportBuffered counts the bytes of a command that outgrew its medium buffer.
func (g *guardConn) reportBuffered(bytes int) {
	if g.reported != bytes {
		g.reported = bytes
		g.events.setBuffered(bytes)
	}
}

// readSpace returns the space for the next bytes of an unauthenticated client, or false if
// there is none. A command that outgrows its buffer moves to a larger one: it is copied
// twice at most, and the smaller buffer is free at once.
func (g *guardConn) readSpace() (free []byte, ok bool) {
	if g.buf == nil {
		g.smallBuf = g.pools.small.Get().(*[smallBufSize]byte)
		g.buf = g.smallBuf[:0]
	}
	g.compact()
	if len(g.buf) == cap(g.buf) && !g.grow() {
		return nil, false
	}
	return g.buf[len(g.buf):cap(g.buf)], true
}

// grow moves an unauthenticated command from a small to a medium and from there to a large buffer.
func (g *guardConn) grow() bool {
	old := g.buf
	switch {
	case cap(old) < mediumBufSize && g.memory.grow(mediumBufSize):
		g.reserved = true
		medium := g.pools.medium.Get().(*[mediumBufSize]byte)
		g.buf = append(medium[:0], old...)
		g.returnBuffers()
		g.mediumBuf = medium
	case cap(old) >= mediumBufSize && cap(old) < largeBufSize && g.memory.grow(largeBufSize):
		g.reserved = true
		large := g.pools.large.Get().(*[largeBufSize]byte)
		g.buf = append(large[:0], old...)
		g.returnBuffers()
		g.largeBuf = large
	default:
		return false
	}
	return true
}

// compact moves the bytes that are not handed over yet to the start of buf.
func (g *guardConn) compact() {
	if g.start > 0 {
		g.buf = g.buf[:copy(g.buf, g.buf[g.start:])]
		g.start = 0
	}
}

// release returns the memory to the pools: an idle connection holds none.
func (g *guardConn) release() {
	g.endReservation()
	g.returnBuffers()
	g.buf, g.start = nil, 0
	g.reportBuffered(0)
}

// endReservation frees the reservation of unauthenticated memory.
func (g *guardConn) endReservation() {
	if g.reserved {
		g.reserved = false
		g.memory.release()
	}
}

// returnBuffers returns the buffers that buf does not use anymore.
func (g *guardConn) returnBuffers() {
	if g.mediumBuf != nil {
		g.pools.medium.Put(g.mediumBuf)
	}
	if g.smallBuf != nil {
		g.pools.small.Put(g.smallBuf)
	}
	if g.largeBuf != nil {
		g.pools.large.Put(g.largeBuf)
	}
	g.mediumBuf, g.smallBuf, g.largeBuf = nil, nil, nil
}
