package proxy

// buffer.go stores the bytes of a command until it is complete: in a pooled medium buffer
// while they fit, and in none while there are none. An unauthenticated client gets a small
// buffer, and larger ones only from the memory limit.

import (
	"sync"
	"time"
)

const (
	pageSize = 8 << 10 // holds what a read can add to a command that fits redcon's buffer
	nookSize = 2 << 10 // holds every honest login: names and passwords have some hundred bytes
	// largeBufSize holds the longest unauthenticated command and the bytes that exceed it.
	hallSize = newcomerCommand + nookSize
)

// bufferPools are the buffers that all guards of a server share, and their limits.
type stock struct {
	pages  sync.Pool // of *[mediumBufSize]byte
	nooks  sync.Pool // of *[smallBufSize]byte
	halls  sync.Pool // of *[largeBufSize]byte
	budget budget
	turns  turns
}

// open makes the pools ready; unauth is the memory limit of unauthenticated clients in bytes.
func (s *stock) fill(unauth int) {
	s.pages.New = func() any { return new([pageSize]byte) }
	s.nooks.New = func() any { return new([nookSize]byte) }
	s.halls.New = func() any { return new([hallSize]byte) }
	s.budget.most = unauth
	s.turns.pace, s.turns.now = perSecond(turnsPerSecond, turnsAtOnce), time.Now
}

// buffer stores bytes from the socket. buf never holds more than one incomplete command
// and one read, since nothing is read while buf holds a complete one.
func (g *guard) keep(p []byte) {
	if len(p) == 0 {
		return
	}
	if g.buf == nil {
		g.page = g.stock.pages.Get().(*[pageSize]byte)
		g.buf = g.page[:0]
	}
	g.compact()
	before := cap(g.buf)
	g.buf = append(g.buf, p...)
	if cap(g.buf) != before { // append has reallocated it
		g.giveBack()
		g.tellKept(cap(g.buf))
	}
}

// reportBuffered counts the bytes of a command that outgrew its medium buffer.
func (g *guard) tellKept(bytes int) {
	if g.kept != bytes {
		g.kept = bytes
		g.receiver.keeps(bytes)
	}
}

// readSpace returns the space for the next bytes of an unauthenticated client, or false if
// there is none. A command that outgrows its buffer moves to a larger one: it is copied
// twice at most, and the smaller buffer is free at once.
func (g *guard) room() (free []byte, ok bool) {
	if g.buf == nil {
		g.nook = g.stock.nooks.Get().(*[nookSize]byte)
		g.buf = g.nook[:0]
	}
	g.compact()
	if len(g.buf) == cap(g.buf) && !g.grow() {
		return nil, false
	}
	return g.buf[len(g.buf):cap(g.buf)], true
}

// grow moves an unauthenticated command from a small to a medium and from there to a large buffer.
func (g *guard) grow() bool {
	old := g.buf
	switch {
	case cap(old) < pageSize && g.share.raise(pageSize):
		g.charged = true
		medium := g.stock.pages.Get().(*[pageSize]byte)
		g.buf = append(medium[:0], old...)
		g.giveBack()
		g.page = medium
	case cap(old) >= pageSize && cap(old) < hallSize && g.share.raise(hallSize):
		g.charged = true
		large := g.stock.halls.Get().(*[hallSize]byte)
		g.buf = append(large[:0], old...)
		g.giveBack()
		g.hall = large
	default:
		return false
	}
	return true
}

// compact moves the bytes that are not handed over yet to the start of buf.
func (g *guard) compact() {
	if g.start > 0 {
		g.buf = g.buf[:copy(g.buf, g.buf[g.start:])]
		g.start = 0
	}
}

// release returns the memory to the pools: an idle connection holds none.
func (g *guard) release() {
	g.discharge()
	g.giveBack()
	g.buf, g.start = nil, 0
	g.tellKept(0)
}

// endReservation frees the reservation of unauthenticated memory.
func (g *guard) discharge() {
	if g.charged {
		g.charged = false
		g.share.release()
	}
}

// returnBuffers returns the buffers that buf does not use anymore.
func (g *guard) giveBack() {
	if g.page != nil {
		g.stock.pages.Put(g.page)
	}
	if g.nook != nil {
		g.stock.nooks.Put(g.nook)
	}
	if g.hall != nil {
		g.stock.halls.Put(g.hall)
	}
	g.page, g.nook, g.hall = nil, nil, nil
}
