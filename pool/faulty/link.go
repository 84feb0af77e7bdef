// Connections through a relay. In each direction one goroutine
// reads and stamps what arrives and another forwards it when the relay's faults
// allow: with one for both, a delay would also delay the reading of what comes
// next, and the delays of a pipeline would add up.

package faulty

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"time"
)

const (
	dialTimeout = maxWait // to a master on the same machine
	chunkSize   = 16 << 10
	// maxHeldChunks bounds what a held direction keeps per connection (1 MiB);
	// beyond that the relay stops reading and the sender's kernel does the rest.
	maxHeldChunks = 64
)

// relayLink is one client's connection and the one to the master made for it.
type relayLink struct {
	relay  *Relay
	client *net.TCPConn
	cut    <-chan struct{} // closed by cancel
	cancel context.CancelFunc
	number int64 // of those that the relay has accepted

	master *net.TCPConn     // nil before it is dialled; guarded by relay.mu
	muted  [directions]bool // see Mute; guarded by relay.mu
}

// chunk has what one read delivered.
type chunk struct {
	data    []byte
	arrived time.Time
}

// resetLocked ends the connections with a reset, which shows each side that
// what is under way is lost.
func (l *relayLink) resetLocked() {
	l.cancel()
	for _, conn := range []*net.TCPConn{l.client, l.master} {
		if conn != nil {
			conn.SetLinger(0)
			conn.Close()
		}
	}
	delete(l.relay.links, l)
}

func (l *relayLink) reset() {
	l.relay.mu.Lock()
	defer l.relay.mu.Unlock()
	l.resetLocked()
}

// run relays both ways until both sides have ended or the link is cut. A master
// that cannot be dialled resets the client.
func (l *relayLink) run(ctx context.Context) {
	defer l.cancel()
	dialer := net.Dialer{Timeout: dialTimeout}
	master, err := dialer.DialContext(ctx, "tcp", l.relay.target)
	if err != nil {
		l.reset()
		return
	}
	if !l.attach(master.(*net.TCPConn)) {
		return
	}
	var answers sync.WaitGroup
	answers.Go(func() { l.carry(ToClient, l.master, l.client) })
	l.carry(ToMaster, l.client, l.master)
	answers.Wait()
	l.relay.mu.Lock()
	defer l.relay.mu.Unlock()
	l.client.Close()
	l.master.Close()
	delete(l.relay.links, l)
}

// attach keeps the connection to the master, unless the link was cut meanwhile.
func (l *relayLink) attach(master *net.TCPConn) bool {
	l.relay.mu.Lock()
	defer l.relay.mu.Unlock()
	if _, alive := l.relay.links[l]; !alive {
		master.Close()
		return false
	}
	l.master = master
	return true
}

// carry relays one direction: an orderly end is forwarded behind the last
// byte, anything else resets both sides.
func (l *relayLink) carry(d Direction, from, to *net.TCPConn) {
	chunks := make(chan chunk, maxHeldChunks)
	var failed error // of the reader; read after chunks is closed
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(chunks)
		failed = l.receive(from, chunks)
	})
	for c := range chunks {
		if !l.deliver(d, c, to) {
			l.reset() // also ends the reader, whose chunks are dropped below
			break
		}
	}
	reader.Wait()
	if failed != nil {
		l.reset()
		return
	}
	to.CloseWrite()
}

// receive reads until the end of the stream (nil) or an error.
func (l *relayLink) receive(from *net.TCPConn, chunks chan<- chunk) error {
	buf := make([]byte, chunkSize)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			select {
			case chunks <- chunk{data: bytes.Clone(buf[:n]), arrived: time.Now()}:
			case <-l.cut:
				return net.ErrClosed
			}
		}
		if err == io.EOF && l.relay.isMuted(l) {
			l.reset() // what is held will never leave
			return net.ErrClosed
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// deliver forwards a chunk as the relay grants it; false if the link is cut or
// its receiver has disconnected.
func (l *relayLink) deliver(d Direction, c chunk, to *net.TCPConn) bool {
	for len(c.data) > 0 {
		n, due, changed := l.relay.grant(l, d, c.arrived, len(c.data))
		if n == 0 {
			if !l.await(due, changed) {
				return false
			}
			continue
		}
		if _, err := to.Write(c.data[:n]); err != nil {
			return false
		}
		c.data = c.data[n:]
	}
	return true
}

// await waits until due, if there is such a time, or until something changes;
// false if the link is cut.
func (l *relayLink) await(due time.Time, changed <-chan struct{}) bool {
	var timer <-chan time.Time // nil: never
	if !due.IsZero() {
		timer = time.After(time.Until(due))
	}
	select {
	case <-timer:
		return true
	case <-changed:
		return true
	case <-l.cut:
		return false
	}
}
