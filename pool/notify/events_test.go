package notify

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redlockd/pool/clock"
	"redlockd/pool/wire"
)

// deafEvents belongs to masters that nothing is sent to.
func deafEvents() *Events {
	return &Events{Config: Config{
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Clock: clock.SystemClock(), Timeout: 200 * time.Millisecond,
		Masters: []wire.Master{
			{Name: "a", Network: "tcp", Address: "127.0.0.1:1"}, {Name: "b", Network: "tcp", Address: "127.0.0.1:2"}, {Name: "c", Network: "tcp", Address: "127.0.0.1:3"},
		},
	}, Carried: true, CountEvery: time.Second, Databases: &atomic.Int32{}}
}

func listeners(n int64) wire.Reply {
	return wire.Reply{Kind: wire.ReplyArray, Items: []wire.Reply{{Kind: wire.ReplyString, Str: "redlockd:events:0"}, {Kind: wire.ReplyInt, Int: n}}}
}

func TestEvents_OthersListenWhileAnyMasterSaysSo(t *testing.T) {
	e := deafEvents()
	wants := func(want bool) {
		t.Helper()
		if _, elsewhere := e.Listeners(); elsewhere != want || (e.Databases.Load() != 0) != want {
			t.Errorf("listened elsewhere %t, anywhere %t, want %t", elsewhere, (e.Databases.Load() != 0), want)
		}
	}
	wants(false)
	e.Count(0, listeners(1), e.Clock.Now())
	e.Count(1, listeners(2), e.Clock.Now())
	wants(true)
	e.Count(0, listeners(0), e.Clock.Now())
	e.Count(2, wire.Reply{}, e.Clock.Now()) // nothing that could be read
	wants(true)
	e.remoteUntil[1] = e.Clock.Now() - 1 // it has not been heard of for long
	e.Count(0, listeners(0), e.Clock.Now())
	wants(false)
	e.Count(0, listeners(1), e.Clock.Now())
	e.Close()
	wants(false)
	e.Count(0, listeners(1), e.Clock.Now())
	wants(false)
}

func TestEvents_ThisDaemonsOwnSubscriptionDoesNotCount(t *testing.T) {
	e := deafEvents()
	began := e.Clock.Now()
	for _, m := range e.Masters {
		own := &eventSubscriber{events: e, master: m}
		own.since.Store(int64(began))
		e.subscribers = append(e.subscribers, own)
	}
	e.Count(0, listeners(1), began+1)
	if _, elsewhere := e.Listeners(); elsewhere {
		t.Error("the daemon takes itself for another one")
	}
	e.Count(0, listeners(1), began) // asked before it had subscribed: of another daemon
	if _, elsewhere := e.Listeners(); !elsewhere {
		t.Error("another daemon is taken for this one")
	}
}

func TestEvents_AMasterThatMayNotTellIsNotAskedForAWhile(t *testing.T) {
	e := deafEvents()
	if !e.Counts() {
		t.Error("the masters are not asked")
	}
	e.Count(0, wire.Reply{Kind: wire.ReplyError, Err: wire.MasterError("NOPERM no")}, e.Clock.Now())
	if e.Counts() {
		t.Error("asked again at once")
	}
	e.refusedAt = e.Clock.Now() - countPause - 1
	if !e.Counts() {
		t.Error("never asked again")
	}
}

// subscribed is a subscription whose master a test plays.
func subscribed(t *testing.T) (*Subscription, net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	far, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	near, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return newSubscription(near, 20*time.Second), far
}

func TestSubscription_ReadsMessagesAndNothingElse(t *testing.T) {
	message := "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$5\r\na\r\nb\x00\r\n"
	for _, c := range []struct{ sent, words string }{
		{message, "message|c|a\r\nb\x00"},
		{"*2\r\n$4\r\npong\r\n$0\r\n\r\n", "pong|"},
		{"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n", "subscribe|c|1"},
		{"+OK\r\n", "OK"},
		{"-NOPERM no\r\n", ""}, {"*5\r\n", ""}, {"*-1\r\n", ""}, {"*1\r\n*1\r\n", ""}, {"*1\r\n$-1\r\n", ""}, {"*1\r\n$1048577\r\n", ""},
		{"*1\r\n$99999999999999999999\r\n", ""}, {"*1\r\n$1\r\nabc", ""}, {":1\r\n", ""}, {"\r\n", ""}, {"x\n", ""}, {strings.Repeat("a", 5000), ""},
	} {
		s, master := subscribed(t)
		if _, err := io.WriteString(master, c.sent); err != nil {
			t.Fatal(err)
		}
		words, err := s.next()
		if got := strings.Join(words, "|"); got != c.words || (err != nil) != (c.words == "") {
			t.Errorf("%.40q is read as %q, %v", c.sent, got, err)
		}
	}
}

func TestSubscription_AMasterThatSaysNothingIsAskedAndThenGivenUp(t *testing.T) {
	s, master := subscribed(t)
	s.quiet = 20 * time.Millisecond
	asked := make(chan error, 1)
	go func() {
		ping := make([]byte, len("*1\r\n$4\r\nPING\r\n"))
		_, err := io.ReadFull(master, ping)
		if err == nil && string(ping) != "*1\r\n$4\r\nPING\r\n" {
			err = errors.New(string(ping))
		}
		_, _ = io.WriteString(master, "*2\r\n$4\r\npong\r\n$0\r\n\r\n")
		asked <- err
	}()
	if words, err := s.next(); err != nil || len(words) != 2 || words[0] != "pong" {
		t.Errorf("%q, %v", words, err)
	}
	if err := <-asked; err != nil {
		t.Error(err)
	}
	s.timeout = 20 * time.Millisecond // from here on it says nothing
	if words, err := s.next(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%q, %v", words, err)
	}
}

// A master that speaks out of turn costs its connection, which is made anew.
func TestEventSubscriber_ComesBackAfterItsConnectionEnded(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var visits atomic.Int64
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			say := "+OK\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
			if visits.Add(1) > 1 {
				say += "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n"
			}
			_, _ = io.WriteString(conn, say+"*1\r\n$5\r\nbogus\r\n")
			_, _ = io.Copy(io.Discard, conn)
			conn.Close()
		}
	}()
	e := deafEvents()
	e.Masters[0].Address = ln.Addr().String()
	heard := make(chan string, 64)
	e.Listen(func(message string) { heard <- message })
	select {
	case message := <-heard:
		if message != "hi" || visits.Load() < 2 {
			t.Errorf("%q at visit %d", message, visits.Load())
		}
	case <-time.After(20 * time.Second):
		t.Error("it did not come back")
	}
	e.Unlisten()
	e.closeIdleSubscribers()
	if e.subscribers != nil || (e.Databases.Load() != 0) {
		t.Error("it goes on without a listener")
	}
	e.Close()
	ln.Close()
	<-over
}
