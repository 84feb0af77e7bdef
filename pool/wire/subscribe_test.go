package wire

// subscribe_test.go: a subscription, and masters that send something else than its messages.

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"redlockd/pool/faulty"
)

const (
	confirmed = ">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
	published = ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$5\r\na\r\nb\x00\r\n"
)

// subscribe returns the messages of a subscription, how often it began, and why it ended.
func subscribe(address string, timeout time.Duration) (messages string, began int, err error) {
	err = Subscribe(context.Background(), Master{Network: "tcp", Address: address}, "c", timeout, func() { began++ }, func(message string) { messages += message + "|" })
	return messages, began, err
}

func TestSubscribe_AMasterThatSendsSomethingElseCostsTheConnection(t *testing.T) {
	defer leavesNothing(t, goleak.IgnoreCurrent())
	none := "that is no confirmation"
	for _, c := range []struct {
		sent, messages, because string
		began                   int
	}{
		{confirmed + published + published + "+OK\r\n", "a\r\nb\x00|a\r\nb\x00|", "a reply without a request", 1},
		{published + confirmed + published + ":1\r\n", "a\r\nb\x00|a\r\nb\x00|", "a reply without a request", 1}, // as one that was published meanwhile
		{"+OK\r\n", "", none, 0},
		{"+QUEUED\r\n", "", none, 0}, // at which the library panics
		{"-QUEUED\r\n", "", none, 0},
		{"-NOPERM no\r\n", "", `"-NOPERM no"`, 0},
		{"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n", "", none, 0},
		{">2\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n", "", "for a subscription that does not exist", 0},
		{">4\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n:1\r\n", "", "for a subscription that does not exist", 0},
		{">3\r\n$10\r\npsubscribe\r\n$1\r\nc\r\n:1\r\n", "", "for a subscription that does not exist", 0},
		{">3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:1\r\n", "", "for a subscription that does not exist", 0},
		{">3\r\n$25\r\n" + strings.Repeat("x", 16) + "subscribe\r\n$1\r\nc\r\n:1\r\n+OK\r\n", "", none, 0},
		{confirmed + confirmed, "", "for a subscription that does not exist", 1},
		{confirmed + ">2\r\n$7\r\nmessage\r\n$1\r\nc\r\n-x\r\n", "", "a reply without a request", 1},
		{confirmed + ">3\r\n$7\r\nmessage\r\n*1\r\n:1\r\n%1\r\n:1\r\n:1\r\n-x\r\n", "", "a reply without a request", 1},
		{confirmed + ">3\r\n$7\r\nmessage\r\n$1\r\nd\r\n$1\r\na\r\n-x\r\n", "", "a reply without a request", 1}, // of another channel
		{confirmed + ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1048577\r\n", "", "length 1048577", 1},
	} {
		master := newBadMaster(t, goodGreeting, false)
		master.say.Store(&c.sent)
		messages, began, err := subscribe(master.ln.Addr().String(), 5*time.Minute)
		if messages != c.messages || began != c.began || !strings.Contains(err.Error(), c.because) {
			t.Errorf("%q: messages %q, %d times subscribed, ended with %v; want %q, %d, %q", c.sent, messages, began, err, c.messages, c.began, c.because)
		}
		master.close()
	}
}

// What a master sends after SUBSCRIBE, and then hangs up: a panic of the library would end the
// process.
func FuzzSubscribe_TheProcessSurvives(f *testing.F) {
	for _, stream := range []string{confirmed + published, "+QUEUED\r\n", confirmed + "+QUEUED\r\n", published + confirmed + confirmed, ">2\r\n+subscribe\r\n+c\r\n", ">3\r\n+unsubscribe\r\n_\r\n:0\r\n"} {
		f.Add(stream)
	}
	for _, bad := range badReplies {
		f.Add(confirmed + bad.stream[:min(len(bad.stream), 200)])
	}
	ln, err := net.Listen("unix", filepath.Join(f.TempDir(), "s")) // a fuzzer connects more often than there are ports
	if err != nil {
		f.Fatal(err)
	}
	master := &badMaster{ln: ln, hello: goodGreeting, hangUp: true}
	master.wg.Go(master.accept)
	f.Cleanup(master.close)
	f.Fuzz(func(t *testing.T, stream string) {
		master.say.Store(&stream)
		m := Master{Network: "unix", Address: ln.Addr().String()}
		if err := Subscribe(context.Background(), m, "c", 5*time.Minute, func() {}, func(string) {}); err == nil {
			t.Error("it ended without a reason")
		}
	})
}

func TestSubscribe_AConfirmationBeforeTheRequestIsRefused(t *testing.T) {
	defer leavesNothing(t, goleak.IgnoreCurrent())
	for _, hello := range []string{goodGreeting + confirmed, confirmed + goodGreeting, confirmed} {
		master := newBadMaster(t, hello, false)
		if _, began, err := subscribe(master.ln.Addr().String(), 5*time.Minute); began != 0 || err == nil || !strings.Contains(err.Error(), "for a subscription that does not exist") {
			t.Errorf("%d times subscribed, %v", began, err)
		}
		master.close()
	}
}

func TestSubscribe_AMasterThatSendsNothingReceivesAPingAndIsGivenUp(t *testing.T) {
	defer leavesNothing(t, goleak.IgnoreCurrent())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	received := make(chan string, 1)
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			received <- err.Error()
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, goodGreeting)
		all, _ := io.ReadAll(conn)
		received <- string(all)
	}()
	if _, _, err := subscribe(ln.Addr().String(), 2*time.Second); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("ended with %v", err)
	}
	ln.Close()
	if all := <-received; !strings.HasSuffix(all, "SUBSCRIBE\r\n$1\r\nc\r\n"+pingRequest) {
		t.Errorf("it received %q", all)
	}
}

// It ends with its context, also while it waits for the greeting.
func TestSubscribe_EndsWithItsContext(t *testing.T) {
	defer leavesNothing(t, goleak.IgnoreCurrent())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, end := context.WithCancel(context.Background())
	go func() {
		if conn, err := ln.Accept(); err == nil {
			_, _ = conn.Read(make([]byte, 1)) // HELLO
			end()
			_, _ = io.Copy(io.Discard, conn)
			conn.Close()
		}
	}()
	if err := Subscribe(ctx, Master{Network: "tcp", Address: ln.Addr().String()}, "c", 5*time.Minute, func() {}, func(string) {}); err == nil || ctx.Err() == nil {
		t.Errorf("ended with %v", err)
	}
}

func TestSubscribe_ARealMasterDeliversByteByByte(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { leavesNothing(t, before) }) // after the server's own
	server := faulty.Start(t)
	relay := faulty.NewRelay(server.Addr())
	defer relay.Close()
	relay.ByteByByte(true)
	ctx, end := context.WithCancel(context.Background())
	defer end()
	publish := func() {
		if reply, err := server.Do("PUBLISH", "c", "a\r\nb"); reply != int64(1) {
			t.Errorf("PUBLISH is answered %v, %v", reply, err)
		}
	}
	received := 0
	err := Subscribe(ctx, Master{Network: "tcp", Address: relay.Addr()}, "c", 5*time.Minute, publish, func(message string) {
		if received++; message != "a\r\nb" {
			t.Errorf("received %q", message)
		}
		if received == 3 {
			end()
			return
		}
		publish()
	})
	if received != 3 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d messages, ended with %v", received, err)
	}
}
