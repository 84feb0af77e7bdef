// What the public API of rueidis costs for a command, without a socket and without a server:
// the connection answers from memory. It shows what a change of the client of a lane would save.
//
//	go test -run '^$' -bench Rueidis -benchmem .

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"redlockd/proxy/resp"
)

// cannedConn answers every command with OK, as soon as it is written.
type cannedConn struct {
	net.Conn // nil: nothing else is called
	mu       sync.Mutex
	written  sync.Cond
	answers  []byte // not read yet
	closed   bool
}

func newCannedConn() *cannedConn {
	c := &cannedConn{}
	c.written.L = &c.mu
	return c
}

func (c *cannedConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, net.ErrClosed
	}
	for n := bytes.Count(p, []byte("*")); n > 0; n-- {
		c.answers = append(c.answers, "+OK\r\n"...)
	}
	c.written.Signal()
	return len(p), nil
}

func (c *cannedConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.answers) == 0 {
		if c.closed {
			return 0, net.ErrClosed
		}
		c.written.Wait()
	}
	n := copy(p, c.answers)
	c.answers = append(c.answers[:0], c.answers[n:]...)
	return n, nil
}

func (c *cannedConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.written.Broadcast()
	return nil
}

func (c *cannedConn) SetDeadline(time.Time) error { return nil }

// cannedClient is a client on such a connection, with the options of a lane.
func cannedClient(b *testing.B) rueidis.Client {
	conn := newCannedConn()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{"canned:1"}, DisableCache: true, AlwaysRESP2: true, ClientSetInfo: rueidis.DisableClientSetInfo,
		ForceSingleClient: true, DisableRetry: true, PipelineMultiplex: -1, BlockingPipeline: -1,
		WriteBufferEachConn: 32 << 10, ReadBufferEachConn: 16 << 10,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return conn, nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		conn.Close() // first, so that rueidis has nothing to wait for
		client.Close()
	})
	return client
}

// flushOf are n acquires as a lane sends them.
func flushOf(n int) (commands [][]string) {
	for i := range n {
		commands = append(commands, []string{"SET", fmt.Sprintf("invoices:%d", i), "mBk3m0mNlKf5Mh2PAbFaUZ0yG5E", "NX", "PXAT", "1800000003752"})
	}
	return commands
}

func BenchmarkRueidis(b *testing.B) {
	ctx := context.Background()
	for _, n := range []int{1, 16, 128} {
		commands := flushOf(n)
		perCommand := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/command")
		}
		b.Run(fmt.Sprintf("raw codec/%d", n), func(b *testing.B) {
			conn := newCannedConn()
			in, out := resp.NewReader(bufio.NewReaderSize(conn, 16<<10)), []byte(nil)
			b.ReportAllocs()
			for b.Loop() {
				out = out[:0]
				for _, words := range commands {
					out = resp.AppendCommand(out, words...)
				}
				if _, err := conn.Write(out); err != nil {
					b.Fatal(err)
				}
				for range commands {
					if r, err := in.ReadValue(); err != nil || r.Text != "OK" {
						b.Fatal(r, err)
					}
				}
			}
			perCommand(b)
		})
		client := cannedClient(b)
		b.Run(fmt.Sprintf("build only/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, words := range commands {
					_ = client.B().Arbitrary(words...).Build()
				}
			}
			perCommand(b)
		})
		b.Run(fmt.Sprintf("DoMulti/%d", n), func(b *testing.B) {
			batch := make([]rueidis.Completed, 0, n)
			b.ReportAllocs()
			for b.Loop() {
				batch = batch[:0]
				for _, words := range commands {
					batch = append(batch, client.B().Arbitrary(words...).Build())
				}
				exchange(ctx, b, client, batch)
			}
			perCommand(b)
		})
		b.Run(fmt.Sprintf("DoMulti, pinned commands/%d", n), func(b *testing.B) {
			batch := make([]rueidis.Completed, 0, n)
			for _, words := range commands {
				batch = append(batch, client.B().Arbitrary(words...).Build().Pin())
			}
			b.ReportAllocs()
			for b.Loop() {
				exchange(ctx, b, client, batch)
			}
			perCommand(b)
		})
	}
}

func exchange(ctx context.Context, b *testing.B, client rueidis.Client, batch []rueidis.Completed) {
	for _, result := range client.DoMulti(ctx, batch...) {
		if text, err := result.ToString(); err != nil || text != "OK" {
			b.Fatal(text, err)
		}
	}
}
