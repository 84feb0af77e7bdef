package daemon

// tracking_test.go: CLIENT TRACKING, as clients of daemons on real masters see it.

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// invalidated reads an invalidation: its key, or "_" for all; on RESP2 all of the message.
func (c *client) invalidated(t *testing.T) string {
	t.Helper()
	head := c.lines(t, 3)
	switch {
	case head[0] == "*3": // on RESP2
		return strings.Join(append(head, c.lines(t, 5)...), " ")
	case head[0] != ">2" || head[2] != "invalidate":
		t.Fatalf("%q", head)
	}
	if next := c.lines(t, 1)[0]; next != "*1" {
		return next
	}
	return c.lines(t, 2)[1]
}

func TestTracking_InvalidatesThroughOtherDaemonsAndByHand(t *testing.T) {
	servers, one, two := pair(t)
	reader, holder := dial(t, one), dial(t, two)
	reader.send(t, "HELLO 3")
	for reader.lines(t, 1)[0] != "modules" {
	}
	reader.lines(t, 1)
	reader.send(t, "CLIENT TRACKING ON")
	holder.send(t, "DLOCK k 60000 TOKEN holders-token")
	holder.lines(t, 5)
	reader.send(t, "GET k")
	if got := reader.lines(t, 3); got[2] != "holders-token" {
		t.Fatalf("%q", got)
	}
	holder.send(t, "DUNLOCK k holders-token")
	if got := reader.invalidated(t); got != "k" {
		t.Errorf("released through the other daemon: %s", got)
	}
	holder.lines(t, 1)
	reader.send(t, "SET k mine-mine NX PX 60000")
	if got := reader.lines(t, 1)[0]; got != "+OK" {
		t.Fatal(got)
	}
	for _, s := range servers {
		s.FlushAll()
	}
	if got := reader.invalidated(t); got != "k" && got != "_" {
		t.Errorf("emptied masters: %s", got)
	}
}

// A connection on RESP2 receives what another one reads.
func TestTracking_RedirectsToASubscriber(t *testing.T) {
	_, one, two := pair(t)
	subscriber, reader, holder := dial(t, one), dial(t, one), dial(t, two)
	id := strings.TrimPrefix(subscriber.ask(t, "CLIENT ID"), ":")
	subscriber.send(t, "SUBSCRIBE __redis__:invalidate")
	subscriber.lines(t, 6)
	if got := reader.ask(t, "CLIENT TRACKING ON REDIRECT %s", id); got != "+OK" {
		t.Fatal(got)
	}
	if got := reader.ask(t, "GET k"); got != "$-1" {
		t.Fatal(got)
	}
	holder.send(t, "DLOCK k 60000")
	if got := subscriber.invalidated(t); got != "*3 $7 message $20 __redis__:invalidate *1 $1 k" {
		t.Error(got)
	}
}

func TestTracking_WithoutAQuorumAllIsInvalid(t *testing.T) {
	servers, one, _ := pair(t)
	reader := dial(t, one)
	reader.send(t, "HELLO 3")
	for reader.lines(t, 1)[0] != "modules" {
	}
	reader.lines(t, 1)
	reader.send(t, "CLIENT TRACKING ON")
	reader.send(t, "EXISTS a b")
	reader.lines(t, 2)
	for _, s := range servers[1:] {
		s.Kill()
	}
	// Lost connections to a quorum are changes; else a reading that has no answer is the loss of all.
	for left := map[string]bool{"a": true, "b": true}; len(left) > 0; {
		if got := reader.invalidated(t); got == "_" {
			clear(left)
		} else if !left[got] {
			t.Fatalf("received %s", got)
		} else {
			delete(left, got)
		}
	}
	if got := reader.ask(t, "ECHO after"); got != "$5" { // and nothing more
		t.Error(got)
	}
}

// The client-side cache of rueidis reads with CLIENT CACHING YES, MULTI, PTTL, GET and EXEC.
func TestTracking_ServesTheCacheOfRueidis(t *testing.T) {
	_, one, two := pair(t)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{one}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	read := func() (value string, cached bool) {
		r := client.DoCache(ctx, client.B().Get().Key("k").Cache(), time.Minute)
		if err := r.Error(); err != nil && !rueidis.IsRedisNil(err) {
			t.Fatal(err)
		}
		value, _ = r.ToString()
		return value, r.IsCacheHit()
	}
	if value, cached := read(); value != "" || cached {
		t.Fatalf("%q, cached: %t", value, cached)
	}
	if _, cached := read(); !cached {
		t.Error("it is not cached")
	}
	holder := dial(t, two)
	holder.send(t, "DLOCK k 60000 TOKEN holders-token")
	holder.lines(t, 5)
	eventually(t, "the cache has the holder", func() bool {
		value, _ := read()
		return value == "holders-token"
	}, func() string { return "" })
	eventually(t, "it is cached", func() bool {
		value, cached := read()
		return value == "holders-token" && cached
	}, func() string { return "" })
	holder.send(t, "DUNLOCK k holders-token")
	holder.lines(t, 1)
	eventually(t, "the cache has no holder", func() bool {
		value, _ := read()
		return value == ""
	}, func() string { return "" })
}
