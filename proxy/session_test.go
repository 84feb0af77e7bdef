package proxy

import (
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"redlockd/commands"
	"redlockd/proxy/resp"
)

func TestSession_AnswersInOrderHoweverCommandsFinish(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{}, d)
	c := dial(t, s)
	r := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		const n = 50
		var input, want strings.Builder
		later := 0
		for i := range n {
			if r.IntN(3) == 0 {
				input.WriteString(command("ECHO", fmt.Sprint("now", i)))
				want.Write(resp.AppendBulk(nil, fmt.Sprint("now", i)))
				continue
			}
			later++
			input.WriteString(command("LATER", fmt.Sprint("later", i)))
			want.Write(resp.AppendBulk(nil, fmt.Sprint("later", i)))
		}
		c.send(input.String())
		calls := make([]*commands.Call, later)
		for i := range calls {
			calls[i] = d.next(t) // all are in flight before any is answered
		}
		r.Shuffle(later, func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
		var finishing sync.WaitGroup
		for half := range 2 {
			finishing.Go(func() {
				for i := half; i < later; i += 2 {
					calls[i].Completer.Complete(commands.Bulk(calls[i].Args[1]))
				}
			})
		}
		finishing.Wait()
		c.expect(want.String())
	}
}

func TestSession_KeepsABarrierApartFromItsNeighbours(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{}, d)
	c := dial(t, s)
	c.send(command("LATER", "a") + command("ECHO", "b") + command("LATERBARRIER") + command("LATER", "c") + command("PING") + command("SELECT", "3") + command("DB"))
	a := d.next(t)
	for len(d.started()) < 2 { // the second one is started right after it
		runtime.Gosched()
	}
	// The commands after it were read together with it and are not run.
	if got, want := d.started(), []string{"LATER a", "ECHO b"}; !reflect.DeepEqual(got, want) {
		t.Fatalf("started %q before the barrier, want %q", got, want)
	}
	a.Reply(commands.Simple("A"))
	c.expect("+A\r\n$1\r\nb\r\n")
	barrier := d.next(t)
	if got := d.started(); len(got) != 3 {
		t.Fatalf("started %q beside the barrier", got)
	}
	c.send(command("DB")) // the socket is still read, and the row grows
	barrier.Reply(commands.Simple("B"))
	c.expect("+B\r\n")
	inFlight := d.next(t)
	inFlight.Reply(commands.Simple("C"))
	c.expect("+C\r\n+PONG\r\n+OK\r\n:3\r\n:3\r\n")
}

func TestSession_EncodesRepliesAroundHelloInTheirOwnProtocol(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{}, d)
	c := dial(t, s)
	c.send(command("LATER") + command("NIL") + command("HELLO", "3") + command("NIL") + command("HELLO", "2") + command("NIL"))
	d.next(t).Reply(commands.Nil)
	c.expect("$-1\r\n$-1\r\n%1\r\n$5\r\nproto\r\n:3\r\n_\r\n*2\r\n$5\r\nproto\r\n:2\r\n$-1\r\n")
}

func TestSession_RunsNothingAfterAQuitThatFinishesLater(t *testing.T) {
	d := newDispatcher()
	d.execute = func(call *commands.Call) bool {
		if call.Args[0] == "LATERBARRIER" {
			d.later <- call
			return true
		}
		return false
	}
	s := serve(t, Options{}, d)
	c := dial(t, s)
	c.send(command("PING") + command("LATERBARRIER") + command("ECHO", "never"))
	call := d.next(t)
	call.Client.Closing = true
	call.Reply(commands.OK)
	c.expectEnd("+PONG\r\n+OK\r\n")
	if got := d.started(); len(got) != 2 {
		t.Errorf("started %q", got)
	}
}

func TestSession_StopsReadingAtItsWindow(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{Window: 16}, d)
	c := dial(t, s)
	const all = 100
	c.send(strings.Repeat(command("LATER"), all))
	calls := make([]*commands.Call, 0, all)
	for len(calls) < all {
		for range min(16, all-len(calls)) {
			calls = append(calls, d.next(t))
		}
		if n := len(d.started()); n > len(calls) {
			t.Fatalf("%d commands started, %d answered, window 16", n, len(calls)-16)
		}
		for _, call := range calls[max(0, (len(calls)-1)/16*16):] {
			call.Reply(commands.OK)
		}
	}
	c.expect(strings.Repeat("+OK\r\n", all))
}

func TestSession_StartsNothingWhileTooMuchIsUnwritten(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{MaxUnwritten: 10_000}, d)
	c := dial(t, s)
	word := strings.Repeat("x", 900)
	const all = 100
	c.send(command("LATER") + strings.Repeat(command("ECHO", word), all) + command("LATER", "last"))
	head := d.next(t) // holds every reply back
	other := dial(t, s)
	other.send(command("PING"))
	other.expect("+PONG\r\n")
	if n := len(d.started()); n > 15 {
		t.Errorf("%d commands started although about eleven replies fill the bound", n)
	}
	head.Reply(commands.OK)
	c.expect("+OK\r\n" + strings.Repeat(string(resp.AppendBulk(nil, word)), all))
	d.next(t).Reply(commands.OK)
	c.expect("+OK\r\n")
}

func TestSession_StartsNothingMoreWhenABarrierLetsTooMuchGo(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{MaxUnwritten: 10_000}, d)
	c, other := dial(t, s), dial(t, s)
	word := strings.Repeat("x", 900)
	const all = 20 // 20 kB of commands, taken in while the barrier runs
	c.send(command("LATERBARRIER") + command("LATER") + strings.Repeat(command("ECHO", word), all))
	barrier := d.next(t)
	session := barrier.Completer.(*pendingReply).session
	for taken := 0; taken < all+2; runtime.Gosched() {
		session.mu.Lock()
		taken = session.waiting
		session.mu.Unlock()
	}
	barrier.Reply(commands.OK)
	c.expect("+OK\r\n")
	head := d.next(t)
	other.send(command("PING"))
	other.expect("+PONG\r\n")
	for pumping := true; pumping; runtime.Gosched() {
		session.mu.Lock()
		pumping = session.writerRuns
		session.mu.Unlock()
	}
	if n := len(d.started()); n > 16 {
		t.Errorf("%d commands started although about eleven replies fill the bound", n)
	}
	head.Reply(commands.OK)
	c.expect("+OK\r\n" + strings.Repeat(string(resp.AppendBulk(nil, word)), all))
}

func TestSession_StopsReadingWhenTooManyBytesAreUnanswered(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{}, d)
	c, other := dial(t, s), dial(t, s)
	const all = 30 // of 60 kB each; 256 kB may be unanswered
	go func() {
		_, _ = io.WriteString(c.Conn, strings.Repeat(command("LATER", strings.Repeat("x", 60_000)), all))
	}()
	var calls []*commands.Call
	for len(calls) < all {
		calls = append(calls, d.next(t))
		if len(calls)%5 == 0 { // the fifth fills the bound
			other.send(command("PING"))
			other.expect("+PONG\r\n")
			if n := len(d.started()); n > len(calls)+1+len(calls)/5 { // PINGs count
				t.Fatalf("%d commands started", n)
			}
			for _, call := range calls[len(calls)-5:] {
				call.Reply(commands.OK)
			}
		}
	}
	c.expect(strings.Repeat("+OK\r\n", all))
}

func TestSession_TakesTheFirstOfTwoAnswers(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{}, d)
	c := dial(t, s)
	c.send(command("LATER"))
	call := d.next(t)
	call.Reply(commands.Simple("first"))
	call.Reply(commands.Simple("second"))
	c.expect("+first\r\n")
	for range 50 { // its pendingReply is never reused
		c.send(command("LATER"))
		next := d.next(t)
		call.Reply(commands.Simple("third"))
		next.Reply(commands.OK)
		c.expect("+OK\r\n")
	}
	if n := s.counters.answeredTwice.Load(); n != 51 {
		t.Errorf("%d second answers counted, want 51", n)
	}
}
