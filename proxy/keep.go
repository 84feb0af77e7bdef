package proxy

// keep.go answers: where do the bytes of a command wait that has not come whole?
// In a page of the stock as long as they fit, and nowhere while there are none.
// Who has not signed in gets a nook, and more than that out of the budget.

import (
	"sync"
	"time"
)

const (
	pageSize = 8 << 10 // holds what a read can add to a command that fits redcon's buffer
	nookSize = 2 << 10 // holds every honest login: names and passwords have some hundred bytes
	// hallSize holds the longest command of a newcomer and what tells that it is too long.
	hallSize = newcomerCommand + nookSize
)

// stock is what the guards of a server share.
type stock struct {
	pages  sync.Pool // of *[pageSize]byte
	nooks  sync.Pool // of *[nookSize]byte
	halls  sync.Pool // of *[hallSize]byte
	budget budget
	turns  turns
}

// fill makes the stock ready; unknown is the budget of newcomers in bytes.
func (s *stock) fill(unknown int) {
	s.pages.New = func() any { return new([pageSize]byte) }
	s.nooks.New = func() any { return new([nookSize]byte) }
	s.halls.New = func() any { return new([hallSize]byte) }
	s.budget.most = unknown
	s.turns.pace, s.turns.now = perSecond(turnsPerSecond, turnsAtOnce), time.Now
}

// keep stores what came from the socket. buf never holds more than one command
// short of its end and one read, since nothing is read while a whole one is there.
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
	if cap(g.buf) != before { // append has moved it
		g.giveBack()
		g.tellKept(cap(g.buf))
	}
}

// tellKept counts what a command takes that outgrew its page.
func (g *guard) tellKept(bytes int) {
	if g.kept != bytes {
		g.kept = bytes
		g.receiver.keeps(bytes)
	}
}

// room is where a newcomer's next bytes go; false says that there is none. A
// command that outgrows its place moves to a larger one: it is copied twice at
// most on the way, and what it leaves is free at once.
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

// grow moves a newcomer's command from a nook to a page and from there to a hall.
func (g *guard) grow() bool {
	old := g.buf
	switch {
	case cap(old) < pageSize && g.share.raise(pageSize):
		g.charged = true
		page := g.stock.pages.Get().(*[pageSize]byte)
		g.buf = append(page[:0], old...)
		g.giveBack()
		g.page = page
	case cap(old) >= pageSize && cap(old) < hallSize && g.share.raise(hallSize):
		g.charged = true
		hall := g.stock.halls.Get().(*[hallSize]byte)
		g.buf = append(hall[:0], old...)
		g.giveBack()
		g.hall = hall
	default:
		return false
	}
	return true
}

// compact moves what is not handed over yet to the start of buf.
func (g *guard) compact() {
	if g.start > 0 {
		g.buf = g.buf[:copy(g.buf, g.buf[g.start:])]
		g.start = 0
	}
}

// release gives the memory back: an idle connection holds none.
func (g *guard) release() {
	g.discharge()
	g.giveBack()
	g.buf, g.start = nil, 0
	g.tellKept(0)
}

// discharge ends the share in the budget.
func (g *guard) discharge() {
	if g.charged {
		g.charged = false
		g.share.release()
	}
}

// giveBack returns what buf does not stand in any more.
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
