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
	out   chan []byte // everything that was written and not passed on: one slice at most
	stop  func()
	ended chan struct{} // closed when the pump has ended
}

func newPipe(conn net.Conn) *pipe {
	stopped := make(chan struct{})
	p := &pipe{Conn: conn, out: make(chan []byte, 1), stop: sync.OnceFunc(func() { close(stopped) }), ended: make(chan struct{})}
	go p.pump(stopped)
	return p
}

// Write takes everything at once. As on any connection there is one writer at a time.
func (p *pipe) Write(b []byte) (int, error) {
	select {
	case <-p.ended:
		return 0, net.ErrClosed
	default:
	}
	var before []byte
	select {
	case before = <-p.out:
	default:
	}
	p.out <- append(before, b...) // has room: nothing else fills it
	return len(b), nil
}

// pump carries what was written to the server, until the pipe is closed.
func (p *pipe) pump(stopped <-chan struct{}) {
	defer close(p.ended)
	for {
		select {
		case <-stopped:
			return
		case out := <-p.out:
			if _, err := p.Conn.Write(out); err != nil {
				return
			}
		}
	}
}

// Close ends both directions and waits for the pump.
func (p *pipe) Close() error {
	err := p.Conn.Close()
	p.stop()
	<-p.ended
	return err
}
