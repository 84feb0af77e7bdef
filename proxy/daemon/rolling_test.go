package daemon

// rolling_test.go: daemons restart one after the other behind a TCP balancer while clients lock.

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"redlockd/pool/faulty"
)

// balancer forwards connections to the backends whose /readyz is 200, in turn.
type balancer struct {
	net.Listener
	mu       sync.Mutex
	backends []*backend
	next     int
	refused  atomic.Int64 // connections for which there was no backend
}

type backend struct {
	*operated
	ready atomic.Bool
}

func newBalancer(t *testing.T) *balancer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{Listener: l}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { b.forward(conn) })
		}
	})
	t.Cleanup(running.Wait)
	t.Cleanup(func() { l.Close() })
	return b
}

func (b *balancer) pick() *backend {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range b.backends {
		b.next++
		if one := b.backends[b.next%len(b.backends)]; one.ready.Load() {
			return one
		}
	}
	return nil
}

func (b *balancer) forward(conn net.Conn) {
	defer conn.Close()
	to := b.pick()
	if to == nil {
		b.refused.Add(1)
		return
	}
	out, err := net.Dial("tcp", to.port)
	if err != nil {
		b.refused.Add(1)
		return
	}
	go func() { _, _ = io.Copy(out, conn); out.Close() }()
	_, _ = io.Copy(conn, out)
}

// add checks a backend until its admin endpoint has ended.
func (b *balancer) add(t *testing.T, o *operated) *backend {
	t.Helper()
	one := &backend{operated: o}
	b.mu.Lock()
	b.backends = append(b.backends, one)
	b.mu.Unlock()
	check := func() bool {
		response, err := http.Get(o.url + "/readyz")
		if err != nil {
			one.ready.Store(false)
			return false
		}
		response.Body.Close()
		one.ready.Store(response.StatusCode == http.StatusOK)
		return true
	}
	o.await(t, "/readyz", http.StatusOK)
	check()
	go func() {
		for check() {
			time.Sleep(10 * time.Millisecond)
		}
	}()
	return one
}

// caller is a client that repeats a command once when its connection has ended, as most libraries do.
type caller struct {
	address string
	conn    net.Conn
	replies *bufio.Reader
}

func (c *caller) try(line string) (reply string, err error) {
	if c.conn == nil {
		if c.conn, err = net.Dial("tcp", c.address); err != nil {
			return "", err
		}
		c.replies = bufio.NewReader(c.conn)
	}
	if err = c.conn.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		return "", err
	}
	if _, err = fmt.Fprintf(c.conn, "%s\r\n", line); err == nil {
		reply, err = c.replies.ReadString('\n')
	}
	if reply = strings.TrimSpace(reply); err == nil && reply == "*3" { // a grant: its token's length, it, validity, fence
		for range 4 {
			if _, err = c.replies.ReadString('\n'); err != nil {
				break
			}
		}
	}
	if err != nil {
		c.close()
	}
	return reply, err
}

func (c *caller) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

func (c *caller) do(line string) (reply string, repeated bool, err error) {
	if reply, err = c.try(line); err != nil {
		reply, err = c.try(line)
		repeated = true
	}
	return reply, repeated, err
}

// pair takes a lock and releases it, and returns what did not succeed.
func (c *caller) pair(key string, wait bool) error {
	token, words := key+"-token", ""
	if wait {
		words = " WAIT 60000"
	}
	reply, _, err := c.do("DLOCK " + key + " 30000 TOKEN " + token + words)
	if wait && strings.HasPrefix(reply, "-SHUTDOWN ") { // it says so: on another connection, again
		c.close()
		reply, _, err = c.do("DLOCK " + key + " 30000 TOKEN " + token + words)
	}
	if err != nil || reply != "*3" {
		return fmt.Errorf("DLOCK %s: %q, %w", key, reply, errors.Join(err, io.ErrUnexpectedEOF))
	}
	reply, repeated, err := c.do("DUNLOCK " + key + " " + token)
	if err != nil || reply != ":1" && !(repeated && reply == ":0") {
		return fmt.Errorf("DUNLOCK %s: %q, %w", key, reply, errors.Join(err, io.ErrUnexpectedEOF))
	}
	return nil
}

// No command fails while two daemons restart, one after the other; a wait that is refused is granted when
// it is repeated.
func TestDrainGrace_ARollingRestartBehindABalancerFailsNoCommand(t *testing.T) {
	t.Parallel()
	servers := faulty.StartGroup(t, 3)
	bootstrapGroup(t, servers)
	b := newBalancer(t)
	start := func() *backend {
		return b.add(t, operate(t, "--masters", listOf(servers), "--drain-grace", "3s", "--log-level", "error"))
	}
	daemons := []*backend{start(), start()}
	stop, failures := make(chan struct{}), make(chan error, 100)
	var pairs atomic.Int64
	var working sync.WaitGroup
	for i := range 4 {
		working.Go(func() {
			c := &caller{address: b.Addr().String()}
			defer c.close()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if n%50 == 0 && i%2 == 0 { // pools open connections all the time
					c.close()
				}
				if err := c.pair(fmt.Sprint("k", i), i == 3); err != nil {
					select {
					case failures <- err:
					default:
					}
				}
				pairs.Add(1)
			}
		})
	}
	serves := func() {
		t.Helper()
		from := pairs.Load()
		eventually(t, "clients lock", func() bool { return pairs.Load() > from+100 }, func() string { return fmt.Sprint(pairs.Load()) })
	}
	for _, one := range daemons {
		serves()
		if err := one.process.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if body := one.await(t, "/readyz", http.StatusServiceUnavailable); body != "draining\n" {
			t.Errorf("it says %q", body)
		}
		c := dial(t, one.port) // the port accepts and serves
		if reply := c.ask(t, "DLOCK during 30000"); reply != "*3" {
			t.Errorf("during the grace: %s", reply)
		}
		c.lines(t, 4)
		if reply := c.ask(t, "DLOCK during 30000 WAIT 1000"); !strings.HasPrefix(reply, "-SHUTDOWN ") {
			t.Errorf("a new wait: %s", reply)
		}
		if reply := c.ask(t, "DFORCE during"); reply != ":1" {
			t.Errorf("during the grace: %s", reply)
		}
		if err := one.process.Wait(); err != nil {
			t.Errorf("the daemon ended with %v", err)
		}
		start()
	}
	serves()
	close(stop)
	working.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
	if n := b.refused.Load(); n > 0 {
		t.Errorf("%d of the clients' connections found no daemon", n)
	}
	t.Logf("%d pairs", pairs.Load())
}
