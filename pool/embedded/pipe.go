package embedded

import (
	"net"
	"sync"
)

// pipe is one end of an in-memory connection whose writes do not wait for the
// reader, as on a socket. Without that a flush longer than the server's read
// buffer would deadlock: the server stops reading to write its first reply,
// which the client reads only after it has written the whole flush.
type pipe struct {
	net.Conn

	mu     sync.Mutex
	filled sync.Cond
	buf    []byte
	err    error
	done   chan struct{} // closed when the pump has ended
}

func newPipe(conn net.Conn) *pipe {
	p := &pipe{Conn: conn, done: make(chan struct{})}
	p.filled.L = &p.mu
	go p.pump()
	return p
}

// Write takes everything at once; an earlier failure is reported here.
func (p *pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return 0, p.err
	}
	p.buf = append(p.buf, b...)
	p.filled.Signal()
	return len(b), nil
}

// pump carries what was written to the server, until the pipe is closed.
func (p *pipe) pump() {
	defer close(p.done)
	var out []byte
	for {
		p.mu.Lock()
		for len(p.buf) == 0 && p.err == nil {
			p.filled.Wait()
		}
		if p.err != nil {
			p.mu.Unlock()
			return
		}
		out, p.buf = p.buf, out[:0]
		p.mu.Unlock()
		if _, err := p.Conn.Write(out); err != nil {
			p.fail(err)
			return
		}
	}
}

func (p *pipe) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	p.filled.Signal()
}

// Close ends both directions and waits for the pump.
func (p *pipe) Close() error {
	err := p.Conn.Close()
	p.fail(net.ErrClosed)
	<-p.done
	return err
}
