package proxy

// subscribers_test.go tests the events of locks that subscribers read.

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/commands/conn"
	"redlockd/redlock"
)

// happenings play the daemon's locks.
type happenings struct {
	commands.Inspect

	mu    sync.Mutex
	heard func(redlock.Event)
}

func (h *happenings) Listen(_ int, heard func(redlock.Event)) func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard = heard
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.heard = nil
	}
}

// tell publishes that a key was granted; it returns false without subscribers.
func (h *happenings) tell(key string) bool {
	h.mu.Lock()
	heard := h.heard
	h.mu.Unlock()
	if heard != nil {
		heard(redlock.Event{Kind: redlock.EventAcquired, Key: redlock.Key(key), Fence: 9, At: time.UnixMilli(5)})
	}
	return heard != nil
}

func serveEvents(t *testing.T, o Options) (*Server, *happenings) {
	t.Helper()
	h := &happenings{}
	return serve(t, o, commands.NewTable(commands.Deps{Inspect: h}, conn.Rows)), h
}

func TestSession_SubscribersReadEventsInBothProtocols(t *testing.T) {
	s, h := serveEvents(t, Options{})
	for _, c := range []struct{ hello, push string }{{"", "*"}, {"3", ">"}} {
		client := dial(t, s)
		if c.hello != "" {
			client.send(command("HELLO", c.hello))
			client.expect("%7\r\n")
			client.skip("modules\r\n*0\r\n")
		}
		client.send(command("SUBSCRIBE", "dlock:a") + command("PSUBSCRIBE", "dlock:*"))
		client.expect(c.push + "3\r\n$9\r\nsubscribe\r\n$7\r\ndlock:a\r\n:1\r\n" + c.push + "3\r\n$10\r\npsubscribe\r\n$7\r\ndlock:*\r\n:2\r\n")
		h.tell("a")
		client.expect(c.push + "3\r\n$7\r\nmessage\r\n$7\r\ndlock:a\r\n$14\r\nacquired 9 5 -\r\n" +
			c.push + "4\r\n$8\r\npmessage\r\n$7\r\ndlock:*\r\n$7\r\ndlock:a\r\n$14\r\nacquired 9 5 -\r\n")
		client.Close()
		forgotten(t, s)
	}
	if h.tell("a") {
		t.Error("the daemon is still asked for events")
	}
}

// A client on RESP2 that has unsubscribed takes the next array for the reply to
// its next command.
func TestSession_NoEventFollowsTheEndOfTheLastSubscription(t *testing.T) {
	s, h := serveEvents(t, Options{})
	c := dial(t, s)
	for i := range 50 {
		c.send(command("SUBSCRIBE", "dlock:a"))
		c.expect("*3\r\n$9\r\nsubscribe\r\n$7\r\ndlock:a\r\n:1\r\n")
		var telling sync.WaitGroup
		telling.Add(1)
		go func() {
			defer telling.Done()
			for range 100 {
				h.tell("a")
			}
		}()
		c.send(command("UNSUBSCRIBE", "dlock:a") + command("ECHO", fmt.Sprint("end-", i)))
		c.skip("unsubscribe\r\n$7\r\ndlock:a\r\n:0\r\n")
		c.expect(fmt.Sprintf("$%d\r\nend-%d\r\n", len(fmt.Sprint("end-", i)), i))
		telling.Wait()
	}
}

// skip reads on until it has read these bytes.
func (c *client) skip(end string) {
	c.t.Helper()
	var read []byte
	for !strings.HasSuffix(string(read), end) {
		b, err := c.in.ReadByte()
		if err != nil || len(read) > 1<<16 {
			c.t.Fatalf("%s and %v, and not %q", shorten(string(read)), err, end)
		}
		read = append(read, b)
	}
}

func TestSession_ASubscriberThatDoesNotReadIsCutAndCounted(t *testing.T) {
	s, h := serveEvents(t, Options{MaxUnwritten: 16 << 10})
	slow, quick := dial(t, s), dial(t, s)
	slow.send(command("PSUBSCRIBE", "dlock:*"))
	slow.expect("*3\r\n$10\r\npsubscribe\r\n$7\r\ndlock:*\r\n:1\r\n")
	quick.send(command("SUBSCRIBE", "dlock:last"))
	quick.expect("*3\r\n$9\r\nsubscribe\r\n$10\r\ndlock:last\r\n:1\r\n")
	key := strings.Repeat("k", 512)
	for end := time.Now().Add(testTimeout); s.Stats().Slow == 0; {
		h.tell(key)
		if time.Now().After(end) {
			t.Fatal("it was not cut")
		}
	}
	h.tell("last")
	quick.expect("*3\r\n$7\r\nmessage\r\n$10\r\ndlock:last\r\n$14\r\nacquired 9 5 -\r\n")
	if n := s.Stats().Slow; n != 1 {
		t.Errorf("%d clients cut, want 1", n)
	}
}
