package redlock

// force_test.go: releases by the operator.

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"redlockd/redlock/events"
)

func (d *daemon) force(key Key) (bool, error) {
	d.t.Helper()
	answer := make(chan unlockAnswer, 1)
	d.Force(ForceRequest{Key: key, By: Requester{Addr: "10.0.0.9:1", Name: "admin", User: "ops"}},
		func(was bool, err error) { answer <- unlockAnswer{was, err} })
	a := receive(d.t, answer)
	d.idle()
	return a.was, a.err
}

// forced is force for what must have been held.
func (d *daemon) forced(key Key) {
	d.t.Helper()
	if was, err := d.force(key); !was || err != nil {
		d.t.Errorf("force %q: %v, %v, want true", key, was, err)
	}
}

func TestForce_ReleasesTheHoldersOfEveryModeThroughAnyDaemon(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	var log bytes.Buffer
	d, other := c.daemon(), c.daemon(logsTo(slog.New(slog.NewTextHandler(&log, nil))))
	if was, err := other.force("k"); was || err != nil {
		t.Errorf("a lock that nobody holds: %v, %v", was, err)
	}
	for what, requests := range map[string][]LockRequest{
		"exclusive": {{}}, "own token": {{Token: tokenA}}, "noted": {{Requester: &Requester{Meta: "text"}}},
		"readers": {{Mode: Readers}, {Mode: Readers, Token: tokenB}}, "permits": {{Mode: PermitsOf(3)}, {Mode: PermitsOf(3)}},
	} {
		var grants []Grant
		for _, r := range requests {
			r.Key = "k"
			grants = append(grants, d.get(r))
		}
		d.idle()
		other.forced("k")
		if got := c.stands("k"); got != "- - -" {
			t.Errorf("%s: left is %s", what, got)
		}
		for _, g := range grants {
			if _, err := d.prolongAll(g.Token, long, "k"); !errors.Is(err, ErrNotHeld) {
				t.Errorf("%s: extending what was taken away: %v", what, err)
			}
			if strings.Contains(log.String(), string(g.Token)) || !strings.Contains(log.String(), g.Token.ShortHash()) {
				t.Errorf("%s: the log shows tokens as they are, or not at all: %s", what, log.String())
			}
		}
		other.free("k", other.get(LockRequest{Key: "k"}).Token)
	}
	for _, word := range []string{"10.0.0.9:1", "admin", "ops", "key=k"} {
		if !strings.Contains(log.String(), word) {
			t.Errorf("the log does not say %q: %s", word, log.String())
		}
	}
}

func TestForce_OfOneOfSeveralKeysLeavesTheOthers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	d.get(LockRequest{Key: "a", More: []Key{"b"}, Token: tokenA})
	d.forced("b")
	if c.stands("a") != "token-of-a token-of-a token-of-a" || c.stands("b") != "- - -" {
		t.Errorf("a: %s, b: %s", c.stands("a"), c.stands("b"))
	}
}

func TestForce_NeverTouchesForeignData(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	soon := time.Now().Add(time.Hour).UnixMilli()
	for _, data := range [][]any{
		{"SET", "k", "for ever"}, {"SET", "k", strings.Repeat("x", 2000), "PXAT", soon}, {"ZADD", "k", 1, "member"}, {"ZADD", "k", soon, "m"},
		{"HSET", "k", "n", "3", "1", fmt.Sprint(soon, " token")}, {"HSET", "k", "f", "v"}, {"RPUSH", "k", "x"}, {"SADD", "k", "x"},
	} {
		var before []any
		for i := range c.servers {
			c.do(i, "DEL", "k")
			c.do(i, data...)
			before = append(before, c.do(i, "DUMP", "k"), c.ends(i, "k"))
		}
		if was, err := d.force("k"); was || !errors.Is(err, ErrWrongType) {
			t.Errorf("%.30v: %v, %v, want ErrWrongType", data, was, err)
		}
		var after []any
		for i := range c.servers {
			after = append(after, c.do(i, "DUMP", "k"), c.ends(i, "k"))
		}
		if fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("%.30v was changed", data)
		}
	}
}

func TestForce_NotifiesTheDaemonThatRenewsTheLease(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	for _, forced := range []Key{"a", "b"} {
		over := make(chan error, 1) // its one end
		d.get(LockRequest{Key: "a", More: []Key{"b"}, Hold: &HoldTerms{OnEnd: func(_ Grant, reason error, _ time.Duration) { over <- reason }}})
		d.forced(forced)
		if reason := receive(t, over); !errors.Is(reason, ErrLostForced) {
			t.Errorf("the hold of a and b ended with %v after %s was forced", reason, forced)
		}
		eventually(t, "all keys of the hold are free", func() bool { return c.empty(0, 1, 2) })
		if n := d.Holds(); n != 0 {
			t.Errorf("%d holds are renewed", n)
		}
	}
}

func TestForce_IsReportedAsSuchToListeners(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	heard := make(chan events.Event, 16) // more than there are
	end := d.Listen(0, func(e events.Event) { heard <- e })
	defer end()
	g := d.get(LockRequest{Key: "k"})
	d.forced("k")
	for {
		if e := receive(t, heard); e.Kind != events.Acquired {
			if e.Kind != events.Forced || e.Key != "k" || e.Fence != g.Fence || e.TokenHash != g.Token.ShortHash() {
				t.Errorf("told %q of %q", e.Text(), e.Key)
			}
			return
		}
	}
}

func TestForce_LetsWaitersIn(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	d.get(LockRequest{Key: "k"})
	answer := make(chan lockAnswer, 1)
	d.Wait(nil, LockRequest{Key: "k", TTL: long, Wait: time.Minute}, func(g Grant, err error) { answer <- lockAnswer{g, err} })
	eventually(t, "it waits", func() bool { return d.Waiters() == 1 })
	d.forced("k")
	if a := receive(t, answer); a.err != nil {
		t.Error(a.err)
	}
}

// A master that did not answer receives the release as soon as it does, by token: a holder that
// has taken the key since stays.
func TestForce_ReachesStragglersLaterAndSparesLaterHolders(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon(relayed)
	d.get(LockRequest{Key: "k", Token: tokenA})
	d.relays[2].Refuse()
	d.relays[2].Cut()
	d.await(2, "down")
	d.forced("k")
	if got := c.stands("k"); got != "- - token-of-a" {
		t.Fatalf("left is %s", got)
	}
	d.get(LockRequest{Key: "k", Token: tokenB})
	d.relays[2].Accept()
	d.await(2, "voting")
	d.settled(2)
	if got := c.stands("k"); got != "token-of-b token-of-b -" {
		t.Errorf("left is %s", got)
	}
}

func TestForce_TakesMoreReadersThanAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	ends := time.Now().Add(20 * time.Second).UnixMilli()
	for i := range c.servers {
		words := []any{"ZADD", "k"}
		for n := range 1200 {
			words = append(words, ends-int64(n), fmt.Sprint("reader-nr-", n))
		}
		c.do(i, words...)
		c.do(i, "PEXPIREAT", "k", ends)
	}
	d.forced("k")
	if !c.empty(0, 1, 2) {
		t.Errorf("left is %.200s", c.stands("k"))
	}
}

func TestForce_WithoutAQuorumDoesNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	d.get(LockRequest{Key: "k", Token: tokenA})
	for i := range 2 {
		c.servers[i].Kill()
		d.await(i, "down")
	}
	was, err := d.force("k")
	noQuorum(t, err, "unknown")
	if got := c.do(2, "GET", "k"); was || got != string(tokenA) {
		t.Errorf("%v, and the copy that is left is %v", was, got)
	}
}
