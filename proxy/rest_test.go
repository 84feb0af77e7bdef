package proxy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlockd/commands"
)

// resting counts the goroutines that wait for a resting connection's next command.
func resting() int {
	stacks := make([]byte, 8<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "guard.(*Conn).Rest(")
}

func wantResting(t *testing.T, want int) {
	t.Helper()
	synctest.Wait()
	if got := resting(); got != want {
		t.Fatalf("%d connections rest, want %d", got, want)
	}
}

func TestRest_AConnectionRestsBetweenItsCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, dial := serveOnPipes(t, Options{restAfter: time.Second}, newDispatcher())
		c := dial()
		for range 3 {
			for range 5 { // it receives something in each second
				c.send(command("PING"))
				c.expect("+PONG\r\n")
				time.Sleep(600 * time.Millisecond)
				wantResting(t, 0)
			}
			time.Sleep(2 * time.Second)
			wantResting(t, 1)
		}
		c.send(command("SELECT", "3") + command("DB"))
		c.expect("+OK\r\n:3\r\n")
		time.Sleep(3 * time.Second)
		wantResting(t, 1)
		c.send("DB\r\n") // the client is still the same
		c.expect(":3\r\n")
		time.Sleep(3 * time.Second)
		c.Close()
		wantResting(t, 0)
	})
}

// Commands that arrive in pieces, before, in and after rests, are all run, once and in order.
func TestRest_LosesAndMixesNoBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, dial := serveOnPipes(t, Options{restAfter: time.Second, CommandTimeout: time.Hour}, newDispatcher())
		done := make(chan struct{})
		const clients, commands = 8, 300
		for i := range clients {
			c, random := dial(), rand.New(rand.NewPCG(1, uint64(i)))
			go func() {
				defer func() { done <- struct{}{} }()
				var stream strings.Builder
				for n := range commands {
					word := fmt.Sprintf("%d:%d:%s", i, n, strings.Repeat("x", random.IntN(40)*random.IntN(300)))
					if n%7 == 0 {
						fmt.Fprintf(&stream, "ECHO %s\r\n", word)
					} else {
						stream.WriteString(command("ECHO", word))
					}
				}
				for rest := stream.String(); rest != ""; {
					n := min(1+random.IntN(1+random.IntN(1+random.IntN(20_000))), len(rest))
					c.send(rest[:n])
					rest = rest[n:]
					time.Sleep(time.Duration(random.IntN(4)*random.IntN(1000)) * time.Millisecond)
				}
			}()
			go func() {
				defer func() { done <- struct{}{} }()
				for n := range commands {
					head, err := c.in.ReadString('\n')
					var length int
					if _, scanErr := fmt.Sscanf(head, "$%d\r\n", &length); err != nil || scanErr != nil {
						t.Errorf("reply %d of client %d: %q, %v", n, i, head, err)
						return
					}
					word, err := c.in.ReadString('\n')
					if want := fmt.Sprintf("%d:%d:", i, n); err != nil || len(word) != length+2 || !strings.HasPrefix(word, want) {
						t.Errorf("reply %d of client %d: %s, %v", n, i, shorten(word), err)
						return
					}
				}
			}()
		}
		for range 2 * clients {
			<-done
		}
		time.Sleep(3 * time.Second)
		wantResting(t, clients)
	})
}

func TestRest_RepliesReachAClientWhoseConnectionRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher()
		_, dial := serveOnPipes(t, Options{restAfter: time.Second}, d)
		c := dial()
		c.send(command("LATER") + command("LATER"))
		first, second := d.next(t), d.next(t)
		time.Sleep(3 * time.Second)
		wantResting(t, 1)
		first.Reply(commands.OK)
		c.expect("+OK\r\n")
		c.Close()
		lost := newFakeDeferred("x")
		wantResting(t, 0)
		second.Completer.CompleteDeferred(lost)
		await(t, "the loss", lost.lost)
	})
}

func TestRest_ADaemonThatStopsEndsConnectionsThatRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher()
		s, dial := serveOnPipes(t, Options{restAfter: time.Second}, d)
		idle, killed, waits := dial(), dial(), dial()
		killed.send(command("PING"))
		killed.expect("+PONG\r\n")
		waits.send(command("LATER"))
		call := d.next(t)
		time.Sleep(3 * time.Second)
		wantResting(t, 3)
		if !s.Cut(s.Describe()[1].ID) {
			t.Error("the connection cannot be ended")
		}
		killed.expectEnd("")
		ended := make(chan error, 1)
		go func() { ended <- s.Shutdown(context.Background()) }()
		idle.expectEnd("")
		call.Reply(commands.OK)
		waits.expectEnd("+OK\r\n")
		if err := <-ended; err != nil {
			t.Error(err)
		}
		wantResting(t, 0)
	})
}

// On sockets and with TLS, too.
func TestRest_OverTLS(t *testing.T) {
	a := newAuthority(t, "ca")
	options := secureOptions(t, a)
	options.restAfter = time.Millisecond
	s := serve(t, options, newDispatcher())
	c, err := dialTLS(t, s, a.trusting())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		word := strings.Repeat("x", i*i)
		c.send(command("ECHO", word) + command("PING"))
		c.expect(fmt.Sprintf("$%d\r\n%s\r\n+PONG\r\n", len(word), word))
		time.Sleep(time.Duration(i%5) * time.Millisecond)
	}
}
