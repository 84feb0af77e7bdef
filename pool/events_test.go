package pool

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
)

// deafGroup is a group that was never started: no lane sends anything to its masters.
func deafGroup(t *testing.T) *Group {
	t.Helper()
	p, err := New(Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Masters: []Master{
		{Name: "a", Network: "tcp", Address: "127.0.0.1:1"}, {Name: "b", Network: "tcp", Address: "127.0.0.1:2"}, {Name: "c", Network: "tcp", Address: "127.0.0.1:3"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return newGroup(p, 0)
}

func listeners(n int64) Reply {
	return Reply{Kind: ReplyArray, Items: []Reply{{Kind: ReplyString, Str: "redlockd:events:0"}, {Kind: ReplyInt, Int: n}}}
}

func TestEvents_OthersListenWhileAnyMasterSaysSo(t *testing.T) {
	g := deafGroup(t)
	wants := func(want bool) {
		t.Helper()
		if _, elsewhere := g.Listeners(); elsewhere != want || g.pool.HasListeners() != want {
			t.Errorf("listened elsewhere %t, anywhere %t, want %t", elsewhere, g.pool.HasListeners(), want)
		}
	}
	wants(false)
	g.countListeners(0, listeners(1), g.now())
	g.countListeners(1, listeners(2), g.now())
	wants(true)
	g.countListeners(0, listeners(0), g.now())
	g.countListeners(2, Reply{}, g.now()) // nothing that could be read
	wants(true)
	g.events.remoteUntil[1] = g.now() - 1 // it has not been heard of for long
	g.countListeners(0, listeners(0), g.now())
	wants(false)
	g.countListeners(0, listeners(1), g.now())
	g.closeEvents()
	wants(false)
	g.countListeners(0, listeners(1), g.now())
	wants(false)
}

func TestEvents_ThisDaemonsOwnSubscriptionDoesNotCount(t *testing.T) {
	g := deafGroup(t)
	own, _ := net.Pipe()
	defer own.Close()
	began := g.now()
	for lane := range g.lanes {
		g.events.subscribers = append(g.events.subscribers, &eventSubscriber{group: g, index: lane, conn: own, since: began})
	}
	g.countListeners(0, listeners(1), began+1)
	if _, elsewhere := g.Listeners(); elsewhere {
		t.Error("the daemon takes itself for another one")
	}
	g.countListeners(0, listeners(1), began) // asked before it had subscribed: of another daemon
	if _, elsewhere := g.Listeners(); !elsewhere {
		t.Error("another daemon is taken for this one")
	}
}

func TestEvents_AMasterThatMayNotTellIsNotAskedForAWhile(t *testing.T) {
	g := deafGroup(t)
	if !g.countsListeners() {
		t.Error("the masters are not asked")
	}
	g.countListeners(0, Reply{Kind: ReplyError, Err: MasterError("NOPERM no")}, g.now())
	if g.countsListeners() {
		t.Error("asked again at once")
	}
	g.events.refusedAt = g.now() - countPause - 1
	if !g.countsListeners() {
		t.Error("never asked again")
	}
}

// subscribed is a subscription whose master a test plays.
func subscribed(t *testing.T) (*eventConn, net.Conn) {
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
	g := deafGroup(t)
	g.pool.options.Masters[0].Address = ln.Addr().String()
	heard := make(chan string, 64)
	g.Listen(func(message string) { heard <- message })
	select {
	case message := <-heard:
		if message != "hi" || visits.Load() < 2 {
			t.Errorf("%q at visit %d", message, visits.Load())
		}
	case <-time.After(20 * time.Second):
		t.Error("it did not come back")
	}
	g.Unlisten()
	g.closeIdleSubscribers()
	if g.events.subscribers != nil || g.pool.HasListeners() {
		t.Error("it goes on without a listener")
	}
	g.closeEvents()
	ln.Close()
	<-over
}
