package proxy

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"redlockd/commands"
)

// atOnce answers every command while it is dispatched.
type atOnce struct{}

func (atOnce) Plan([]string) commands.Plan         { return commands.Plan{Weight: 1} }
func (atOnce) Authenticated(*commands.Client) bool { return true }
func (atOnce) Dispatch(call *commands.Call)        { call.Reply(commands.OK) }

// afterwards answers every command on another goroutine, as lanes do.
type afterwards struct{ calls chan *commands.Call }

func (afterwards) Plan([]string) commands.Plan         { return commands.Plan{Weight: 1} }
func (afterwards) Authenticated(*commands.Client) bool { return true }
func (a afterwards) Dispatch(call *commands.Call)      { a.calls <- call }

func BenchmarkSession(b *testing.B) {
	for _, depth := range []int{1, 16} {
		b.Run(fmt.Sprintf("at once/depth=%d", depth), func(b *testing.B) { converse(b, atOnce{}, depth) })
		b.Run(fmt.Sprintf("afterwards/depth=%d", depth), func(b *testing.B) {
			d := afterwards{make(chan *commands.Call, 1024)} // 1024: a window, so that no handler blocks
			done := make(chan struct{})
			go func() {
				defer close(done)
				for call := range d.calls {
					call.Reply(commands.OK)
				}
			}()
			converse(b, d, depth)
			close(d.calls)
			<-done
		})
	}
}

// converse sends pipelines of depth commands and reads their replies; one
// iteration is one command.
func converse(b *testing.B, d Dispatcher, depth int) {
	s := serve(b, Options{}, d)
	conn, err := net.Dial("tcp", s.Addrs()[0])
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	request := []byte(strings.Repeat(command("DLOCK", "invoices:4711", "30000"), depth))
	reply := make([]byte, depth*len("+OK\r\n"))
	b.ReportAllocs()
	for n := 0; n < b.N; n += depth {
		if _, err := conn.Write(request); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(conn, reply); err != nil {
			b.Fatal(err)
		}
	}
}
