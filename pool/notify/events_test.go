package notify

import (
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"redlockd/pool/clock"
	"redlockd/pool/wire"
	"redlockd/proxy/resp"
)

// deafEvents belongs to masters that nothing is sent to.
func deafEvents() *Events {
	return &Events{Channel: "redlockd:events:0", Config: Config{
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Clock: clock.SystemClock(), Timeout: 20 * time.Second,
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

// serve answers HELLO, and SUBSCRIBE with what it is to say.
func serve(conn net.Conn, say string) {
	defer conn.Close()
	in := resp.NewReader(conn)
	for {
		request, err := in.ReadValue()
		if err != nil {
			return
		}
		answer := say
		if request.Words()[0] == "HELLO" {
			answer = "%2\r\n+version\r\n+7.0.15\r\n+proto\r\n:3\r\n"
		}
		_, _ = io.WriteString(conn, answer)
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
			say := ">3\r\n+subscribe\r\n+redlockd:events:0\r\n:1\r\n"
			if visits.Add(1) > 1 {
				say += ">3\r\n+message\r\n+redlockd:events:0\r\n+hi\r\n"
			}
			serve(conn, say+"*1\r\n$5\r\nbogus\r\n")
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
