package proxy

// replymode_test.go tests replies that are not written, calls with several replies, and
// what clients see of one another.

import (
	"strings"
	"testing"

	"redlockd/commands"
	"redlockd/commands/conn"
)

func TestSession_WritesNothingToAClientWithRepliesOff(t *testing.T) {
	s := serve(t, Options{MaxUnwritten: 4096, Window: 16}, commands.NewTable(commands.Deps{Inspect: &happenings{}}, conn.Rows))
	c := dial(t, s)
	c.send(command("CLIENT", "REPLY", "SKIP") + command("ECHO", "a") + command("ECHO", "b"))
	c.expect("$1\r\nb\r\n")
	// More than may wait unwritten: what is not written does not wait.
	c.send(command("CLIENT", "REPLY", "OFF") + strings.Repeat(command("ECHO", strings.Repeat("x", 500)), 500) +
		command("CLIENT", "REPLY", "SKIP") + command("ECHO", "c") + command("CLIENT", "REPLY", "ON") + command("ECHO", "d"))
	c.expect("+OK\r\n$1\r\nd\r\n")
}

func TestSession_RepliesSwitchedOffAreNotUndelivered(t *testing.T) {
	d := newDispatcher()
	d.execute = func(call *commands.Call) bool {
		if call.Args[0] == "OFF" {
			call.Client.ReplyMode = commands.ReplyOff
			call.Reply(commands.Silence)
			return true
		}
		return false
	}
	s := serve(t, Options{}, d)
	c := dial(t, s)
	c.send(command("OFF") + command("LATER"))
	answer := newFakeDeferred("granted")
	call := d.next(t)
	call.Completer.CompleteDeferred(answer)
	await(t, "the question for the answer", answer.made)
	c.Close()
	forgotten(t, s)
	if n := len(answer.lost); n != 0 {
		t.Error("a grant that was not to be heard was given back")
	}
}

func TestSession_ConfirmsSubscriptionsInBothProtocols(t *testing.T) {
	s := serve(t, Options{}, commands.NewTable(commands.Deps{Inspect: &happenings{}}, conn.Rows))
	c := dial(t, s)
	c.send(command("SUBSCRIBE", "a", "b") + command("PING") + command("UNSUBSCRIBE"))
	c.expect("*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n" +
		"*2\r\n$4\r\npong\r\n$0\r\n\r\n" +
		"*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:0\r\n")
	c.send(command("HELLO", "3"))
	c.expect("%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n8.4.0\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n" +
		"$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n")
	c.send(command("PSUBSCRIBE", "a*") + command("PING") + command("PUNSUBSCRIBE") + command("PUNSUBSCRIBE"))
	c.expect(">3\r\n$10\r\npsubscribe\r\n$2\r\na*\r\n:1\r\n+PONG\r\n" +
		">3\r\n$12\r\npunsubscribe\r\n$2\r\na*\r\n:0\r\n>3\r\n$12\r\npunsubscribe\r\n_\r\n:0\r\n")
}

func TestServer_LetsAdminsSeeAndCloseConnections(t *testing.T) {
	var others struct{ *Server }
	s := serve(t, Options{}, commands.NewTable(commands.Deps{Inspect: &happenings{}, Connections: &others}, conn.Rows))
	others.Server = s
	admin, other := dial(t, s), dial(t, s)
	other.send(command("CLIENT", "SETNAME", "worker") + command("SELECT", "3"))
	other.expect("+OK\r\n+OK\r\n")
	if list := s.Describe(); len(list) != 2 || list[0].ID > list[1].ID {
		t.Fatalf("got %+v", list)
	}
	admin.send(command("CLIENT", "KILL", "ADDR", other.LocalAddr().String()))
	admin.expect(":1\r\n")
	other.expectEnd("")
	admin.send(command("CLIENT", "KILL", admin.LocalAddr().String()))
	admin.expectEnd("+OK\r\n")
}

func TestServer_DescribesClientsAsTheyAreAfterTheirLastCommand(t *testing.T) {
	s := serve(t, Options{}, commands.NewTable(commands.Deps{Inspect: &happenings{}}, conn.Rows))
	c := dial(t, s)
	c.send(command("HELLO", "3", "SETNAME", "worker") + command("SELECT", "3") + command("CLIENT", "SETINFO", "LIB-NAME", "lib") + command("SUBSCRIBE", "x") + command("ECHO", "end"))
	for line := ""; line != "end\r\n"; {
		line, _ = c.in.ReadString('\n')
		if line == "" {
			t.Fatal("the connection ended")
		}
	}
	d := s.Describe()[0]
	if d.Name != "worker" || d.DB != 3 || d.Proto != 3 || d.LibName != "lib" || d.Channels != 1 || d.User != "default" || d.Addr != c.LocalAddr().String() {
		t.Errorf("got %+v", d)
	}
}
