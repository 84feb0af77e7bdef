package proxy

// farewell.go answers: how does a connection end so that its client still reads
// the last word, and so that nobody stays for longer than that takes?

import (
	"errors"
	"time"
)

const (
	lingerTime = time.Second // for a client to read the last reply before the socket is torn down
	// lingerBytes is what a client may go on saying that is not listened to any
	// more: a pipeline that was under way when it was refused.
	lingerBytes = 256 << 10
	// newcomerLinger is the same before the login, where nobody has much to say.
	newcomerLinger = 16 << 10
)

// errUnstoppable ends a connection whose client talks on and on.
var errUnstoppable = errors.New("the client goes on although it was told that the connection ends")

// refuse ends the hand-over; the session says text when its turn has come.
func (g *guard) refuse(text string) (n int) {
	g.refused = true
	g.release()
	g.receiver.refuse(text)
	return 0
}

// discard reads without looking, so that the client's leaving is still seen while
// earlier commands are in flight, and so that the last reply is not lost to a
// reset, which closing over unread bytes would cause. The deadline of finish ends
// it, or lingerBytes.
func (g *guard) discard() error {
	g.release()
	if g.stop != nil {
		return g.stop
	}
	if g.limited {
		g.setReadDeadline(0)
	}
	nook := g.stock.nooks.Get().(*[nookSize]byte)
	defer g.stock.nooks.Put(nook)
	rest := lingerBytes
	if !g.receiver.known() {
		rest = newcomerLinger
	}
	for rest > 0 {
		n, err := g.Conn.Read(nook[:])
		if err != nil {
			return err
		}
		rest -= n
	}
	return errUnstoppable
}

// finish says that nothing more will be sent. The client gets the end of the
// stream and a moment to read what it was sent; its own end then ends Read.
func (g *guard) finish() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.finished = true
	half, ok := g.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		_ = g.Conn.SetReadDeadline(time.Now()) // no half to close: Read ends now and closes all
		return
	}
	_ = g.Conn.SetReadDeadline(time.Now().Add(lingerTime))
}

func (g *guard) isFinished() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.finished
}

// evict is the budget's word that the share is gone. It only wakes the reader,
// whose memory it is.
func (g *guard) evict() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.finished {
		return
	}
	g.evicted = true
	select {
	case g.roused <- struct{}{}:
	default:
	}
	_ = g.Conn.SetReadDeadline(time.Now())
}

// tookEviction is true once after evict; from then on there are deadlines again.
func (g *guard) tookEviction() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	evicted := g.evicted
	g.evicted = false
	return evicted
}

func (g *guard) isEvicted() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.evicted
}

// setReadDeadline must not undo the one that finish or evict has set; 0 means none.
func (g *guard) setReadDeadline(after time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.finished || g.evicted {
		return
	}
	g.limited = after > 0
	deadline := time.Time{}
	if after > 0 {
		deadline = time.Now().Add(after)
	}
	_ = g.Conn.SetReadDeadline(deadline) // fails on a closed socket only, which Read will tell
}

// Close closes the socket and tells the session, once.
func (g *guard) Close() error {
	var err error
	g.once.Do(func() {
		err = g.Conn.Close()
		close(g.left)
		g.share.end()
		if r := recordsOf(g.Conn); r != nil {
			r.share.end()
		}
		g.receiver.gone()
	})
	return err
}
