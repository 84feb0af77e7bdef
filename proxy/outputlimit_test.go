package proxy

// outputlimit_test.go tests what a client costs that does not read its replies.

import (
	"io"
	"strings"
	"testing"

	"redlockd/commands"
	"redlockd/proxy/resp"
)

// The head of the reply queue is held back, so nothing is written, and the commands that
// were started before answer all at once.
func TestOutputLimit_ClosesAClientWhoseRepliesExceedIt(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{MaxUnwritten: 4096, OutputLimit: 8192}, d)
	c, other := dial(t, s), dial(t, s)
	const all = 12
	c.send(command("LATER", "head") + strings.Repeat(command("LATER"), all+1))
	head := d.next(t)
	var begun []*commands.Call // all of them: none begins once 4096 bytes are unwritten
	for range all {
		begun = append(begun, d.next(t))
	}
	waiter := d.next(t)
	for _, call := range begun {
		call.Reply(commands.Bulk(strings.Repeat("x", 1000))) // the ninth exceeds the limit
	}
	last := newFakeDeferred("granted")
	waiter.Completer.CompleteDeferred(last)
	await(t, "the loss of what nobody reads", last.lost)
	if got, _ := io.ReadAll(c.in); len(got) != 0 {
		t.Errorf("got %s behind a reply that is missing", shorten(string(got)))
	}
	head.Reply(commands.OK)
	if n := s.Stats().Slow; n != 1 {
		t.Errorf("%d clients closed, want 1", n)
	}
	other.send(command("PING"))
	other.expect("+PONG\r\n")
}

func TestOutputLimit_LetsOneReplyBeLarger(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{MaxUnwritten: 4096, OutputLimit: 8192}, d)
	c := dial(t, s)
	text := strings.Repeat("x", 30_000)
	c.send(command("ECHO", text) + command("ECHO", text) + command("PING"))
	c.expect(string(resp.AppendBulk(resp.AppendBulk(nil, text), text)) + "+PONG\r\n")
	if n := s.Stats().Slow; n != 0 {
		t.Errorf("%d clients closed, want none", n)
	}
}

// Many clients that request much at once leave the cores to the others.
func TestOutputLimit_LargeRepliesAreEncodedOneAfterTheOther(t *testing.T) {
	d := newDispatcher()
	s := serve(t, Options{}, d)
	c, other := dial(t, s), dial(t, s)
	s.largeReply <- struct{}{} // as another session does
	c.send(command("LATER"))
	call := d.next(t)
	text := strings.Repeat("x", largeReplies)
	call.Reply(commands.Bulk(text))
	for range 10 {
		other.send(command("ECHO", "small"))
		other.expect("$5\r\nsmall\r\n")
	}
	session := call.Completer.(*pendingReply).session
	session.mu.Lock()
	unwritten := session.unwritten
	session.mu.Unlock()
	if unwritten == 0 {
		t.Error("a large reply was written while another one was encoded")
	}
	<-s.largeReply
	c.expect(string(resp.AppendBulk(nil, text)))
}
