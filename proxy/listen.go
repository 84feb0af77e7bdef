package proxy

// listen.go answers: how does a client's socket come in, and how does the door
// close without throwing out those who are inside?

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
)

const (
	firstBackoff = 5 * time.Millisecond // as net/http does after a failed accept
	lastBackoff  = time.Second
	rejectTime   = 100 * time.Millisecond // the rejection fits an empty socket buffer; never wait for it
)

// listener is the net.Listener that redcon accepts from. redcon spins on errors
// and closes every connection when its listener ends; so errors are waited out
// here, and a closed door still blocks Accept until the server has drained.
type listener struct {
	net.Listener
	server *Server
	name   string // for people: the address, or the path of the unix socket
	remove func() // what Close leaves on disk

	secure bool        // TLS is spoken here
	greet  sync.Once   // starts what accepts in fact
	ready  chan *guard // unbuffered: a connection that has been greeted is Accept's or closed
}

func newListener(ln net.Listener, name string, remove func()) *listener {
	return &listener{Listener: ln, name: name, remove: remove, ready: make(chan *guard)}
}

// listen opens one of Options.Listen.
func listen(address string, mode fs.FileMode) (*listener, error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return listenUnix(path, mode)
	}
	address, secure := strings.CutPrefix(address, tlsPrefix)
	config := net.ListenConfig{KeepAlive: -1} // take sets it for those who are let in
	ln, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("proxy: Listen %q: %w", address, err)
	}
	l := newListener(ln, ln.Addr().String(), func() {})
	if secure {
		l.name, l.secure = tlsPrefix+l.name, true
	}
	return l, nil
}

// listenUnix makes the socket in a directory of its own that nobody else may
// enter, gives it its mode there and moves it into place: at no moment can
// another user connect, whatever the umask.
func listenUnix(path string, mode fs.FileMode) (*listener, error) {
	fail := func(err error) (*listener, error) {
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
	mine, _ := os.Lstat(path)
	return newListener(ln, "unix:"+path, func() { removeSame(path, mine) }), nil
}

// removable refuses to replace anything but a socket on which nobody answers.
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
func removeSame(path string, mine fs.FileInfo) {
	if now, err := os.Lstat(path); err == nil && mine != nil && os.SameFile(now, mine) {
		_ = os.Remove(path) // gone already is as good
	}
}

// Accept returns connections behind their guards until the server has drained:
// those whose client is known, or has become so.
func (l *listener) Accept() (net.Conn, error) {
	l.greet.Do(func() { l.server.greeters.Go(l.acceptAndGreet) })
	select {
	case g := <-l.ready:
		return g, nil
	case <-l.server.drained:
		return nil, net.ErrClosed
	}
}

// acceptNext is the next connection that is let in, before any word is read.
func (l *listener) acceptNext() (*guard, error) {
	backoff, turnedAway := firstBackoff, 0
	for {
		conn, err := l.Listener.Accept()
		switch {
		case err == nil:
			backoff = firstBackoff
			if g := l.take(conn); g != nil {
				return g, nil
			}
			if turnedAway++; turnedAway%tooHasty == 0 {
				l.server.pause(hastyPause)
			}
		case l.server.isStopping() || errors.Is(err, net.ErrClosed):
			<-l.server.drained
			return nil, net.ErrClosed
		default:
			l.server.options.Logger.Warn("cannot accept clients for now",
				"listen", l.name, "cause", err, "retry", backoff)
			l.server.pause(backoff)
			backoff = min(2*backoff, lastBackoff)
		}
	}
}

// take lets a socket in, or ends it and returns nil.
func (l *listener) take(conn net.Conn) *guard {
	if l.server.hurry(conn) {
		return nil
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: keepAlivePeriod, Interval: keepAlivePeriod})
	}
	if l.secure {
		conn = secure(conn, l.server.tls.Load())
	}
	return l.server.admit(conn, l.name)
}

// Close ends accepting, at once.
func (l *listener) Close() error {
	err := l.Listener.Close()
	l.remove()
	return err
}
