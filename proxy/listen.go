package proxy

// listen.go opens listeners and accepts sockets. A listener can be closed without closing
// the connections that it accepted.

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"redlockd/proxy/guard"
	"redlockd/proxy/preauth"
)

const (
	minBackoff    = 5 * time.Millisecond // as net/http does after a failed accept
	maxBackoff    = time.Second
	rejectTimeout = 100 * time.Millisecond // the reply fits an empty socket buffer; never wait for longer
)

// clientListener is the net.Listener that redcon accepts from. redcon spins on errors
// and closes every connection when its listener ends. So errors are waited out
// here, and Accept of a closed listener blocks until the server has drained.
type clientListener struct {
	net.Listener
	server *Server
	name   string // for display: the address, or the path of the unix socket
	remove func() // removes the socket's file

	secure      bool             // connections use TLS
	startAccept sync.Once        // starts acceptLoop
	ready       chan *guard.Conn // unbuffered: an authenticated connection goes to Accept or is closed
}

func newClientListener(ln net.Listener, name string, remove func()) *clientListener {
	return &clientListener{Listener: ln, name: name, remove: remove, ready: make(chan *guard.Conn)}
}

// listen opens one of Options.Listen.
func listen(address string, mode fs.FileMode) (*clientListener, error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return listenUnix(path, mode)
	}
	address, secure := strings.CutPrefix(address, tlsPrefix)
	config := net.ListenConfig{KeepAlive: -1} // take sets it for accepted sockets
	ln, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("proxy: Listen %q: %w", address, err)
	}
	l := newClientListener(ln, ln.Addr().String(), func() {})
	if secure {
		l.name, l.secure = tlsPrefix+l.name, true
	}
	return l, nil
}

// listenUnix makes the socket in a directory of its own that no other user may
// enter, sets its mode there and moves it into place: at no moment can
// another user connect, whatever the umask.
func listenUnix(path string, mode fs.FileMode) (*clientListener, error) {
	fail := func(err error) (*clientListener, error) {
		return nil, fmt.Errorf("proxy: Listen \"unix:%s\": %w", path, err)
	}
	if path == "" {
		return fail(errors.New("the path is missing, as in unix:/run/redlockd.sock"))
	}
	if err := removable(path); err != nil {
		return fail(err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".rl")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(dir, "s")})
	if err != nil {
		return fail(err)
	}
	ln.SetUnlinkOnClose(false)
	err = os.Chmod(filepath.Join(dir, "s"), mode)
	if err == nil {
		err = os.Rename(filepath.Join(dir, "s"), path)
	}
	if err != nil {
		ln.Close()
		return fail(err)
	}
	ours, _ := os.Lstat(path)
	return newClientListener(ln, "unix:"+path, func() { removeSame(path, ours) }), nil
}

// removable refuses to replace anything but a socket on which no process answers.
func removable(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("there is a file that is not a socket; remove it or choose another path")
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		conn.Close()
		return errors.New("another process answers on this socket")
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("cannot tell whether another process uses this socket: %w", err)
	}
	return nil
}

// removeSame removes the socket unless a successor has put its own there.
func removeSame(path string, ours fs.FileInfo) {
	if now, err := os.Lstat(path); err == nil && ours != nil && os.SameFile(now, ours) {
		_ = os.Remove(path) // fails if it is gone already
	}
}

// Accept returns connections of authenticated clients, behind their guards, until the
// server has drained.
func (l *clientListener) Accept() (net.Conn, error) {
	l.startAccept.Do(func() { l.server.preauth.Go(l.acceptLoop) })
	select {
	case g := <-l.ready:
		return servedConn{g, l}, nil
	case <-l.server.drained:
		return nil, net.ErrClosed
	}
}

// acceptLoop accepts for the listener; it returns when the server has drained.
// There are never more of the goroutines it starts than clients may be connected.
func (l *clientListener) acceptLoop() {
	for {
		g, err := l.acceptNext()
		if err != nil {
			return
		}
		switch {
		case l.secure:
			l.server.preauth.Go(func() { l.handshakeFirst(g) })
		case g.Events.Authenticated():
			l.handOver(g)
		default:
			l.server.preauth.Go(func() { l.authenticate(g) })
		}
	}
}

// handshakeFirst starts another goroutine after the handshake: the stack that the handshake
// needed, 8 kB, would stay with this one.
func (l *clientListener) handshakeFirst(g *guard.Conn) {
	if l.handshake(g) {
		l.server.preauth.Go(func() { l.authenticate(g) })
	}
}

// authenticate hands a connection to redcon once its client is authenticated, or closes it.
func (l *clientListener) authenticate(g *guard.Conn) {
	if err := g.ServeUntilAuthenticated(); err != nil {
		g.Close()
		return
	}
	l.handOver(g)
}

// handOver gives a connection to redcon.
func (l *clientListener) handOver(g *guard.Conn) {
	select {
	case l.ready <- g:
	case <-l.server.drained:
		g.Close()
	}
}

// servedConn is a connection while redcon serves it.
type servedConn struct {
	*guard.Conn
	listener *clientListener
}

// Close is called when redcon ends. A connection that is to rest stays open.
func (c servedConn) Close() error {
	if !c.TakeRest() {
		return c.Conn.Close()
	}
	sessionOf(c).block = nil // 1 kB
	go c.listener.rest(c.Conn)
	return nil
}

// rest hands a connection to redcon again once its client sends something. As redcon's
// goroutines do, it ends with the socket.
func (l *clientListener) rest(g *guard.Conn) {
	if err := g.Rest(); err != nil {
		g.Close()
		return
	}
	l.handOver(g)
}

// acceptNext returns the next accepted connection, before anything is read from it.
func (l *clientListener) acceptNext() (*guard.Conn, error) {
	backoff, rejected := minBackoff, 0
	for {
		conn, err := l.Listener.Accept()
		switch {
		case err == nil:
			backoff = minBackoff
			if g := l.take(conn); g != nil {
				return g, nil
			}
			if rejected++; rejected%preauth.RejectsPerPause == 0 {
				l.server.pause(preauth.RejectPause)
			}
		case l.server.isStopping() || errors.Is(err, net.ErrClosed):
			<-l.server.drained
			return nil, net.ErrClosed
		default:
			l.server.rareLog.Warn("accept failed; retrying", "listen", l.name, "err", err,
				"hint", "clients wait to be connected; if files are missing, raise the limit of open files")
			l.server.pause(backoff)
			backoff = min(2*backoff, maxBackoff)
		}
	}
}

// sendBuffer bounds what the kernel stores for a client that does not read: Linux takes twice
// as much at most, and else up to 4 MB, all of which the daemon would have to encode first.
// It is enough for 1 MB/s over a round trip of 100 ms.
const sendBuffer = 2 * writeSize

// take accepts a socket, or closes it and returns nil.
func (l *clientListener) take(conn net.Conn) *guard.Conn {
	if l.server.connectsTooFast(conn) {
		return nil
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: keepAlivePeriod, Interval: keepAlivePeriod})
		_ = tcp.SetWriteBuffer(sendBuffer)
	}
	if l.secure {
		conn = preauth.WrapTLS(conn, l.server.tls.Load())
	}
	return l.server.accept(conn, l.name)
}

// Close stops accepting at once.
func (l *clientListener) Close() error {
	err := l.Listener.Close()
	l.remove()
	return err
}
