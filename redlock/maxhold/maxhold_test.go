package maxhold

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockd/redlock/engine"
	"redlockd/redlock/events"
	"redlockd/redlock/lease"
	"redlockd/redlock/redlocktest"
	"redlockd/redlock/renew"
	"redlockd/redlock/wait"
)

// ways are how a client may hold a lock.
var ways = map[string]lease.LockRequest{
	"generated":          {Key: "k"},
	"chosen":             {Key: "k", Token: "a-token-of-its-own"},
	"value":              {Key: "k", Token: "value", Mode: lease.Valued},
	"shared":             {Key: "k", Mode: lease.Readers},
	"shared, chosen":     {Key: "k", Mode: lease.Readers, Token: "a-token-of-its-own"},
	"permit":             {Key: "k", Mode: lease.PermitsOf(3)},
	"permit, chosen":     {Key: "k", Mode: lease.PermitsOf(3), Token: "a-token-of-its-own"},
	"level":              {Key: "k", Mode: lease.LevelsOf("an-owner")},
	"several":            {Key: "k", More: []engine.Key{"l", "m"}},
	"several, chosen":    {Key: "k", More: []engine.Key{"l", "m"}, Token: "a-token-of-its-own"},
	"with FAIR":          {Key: "k", Mode: lease.Looking},
	"a value of its own": {Key: "k", Token: "value", Mode: &lease.Swap{Retakes: &lease.Retake{Held: "value"}}},
}

const (
	ttl     = 20 * time.Minute
	longest = 40 * time.Minute
)

// keyed returns the ways, each with keys of its own.
func keyed() map[string]lease.LockRequest {
	all := map[string]lease.LockRequest{}
	for name, r := range ways {
		r.Key, r.TTL = engine.Key(name), ttl
		for _, more := range r.More {
			r.More = append(r.More[1:len(r.More):len(r.More)], engine.Key(name)+more)
		}
		all[name] = r
	}
	return all
}

// The clock is the daemon's and the masters'.
func TestMaxHold_EveryWayOfHoldingALockEnds(t *testing.T) {
	t.Parallel()
	d, grants := newEmbedded(t), map[string]lease.Grant{}
	for name, r := range keyed() {
		r.Mode = heldFor(r.Mode, longest)
		grants[name] = d.take(r)
	}
	again := func(g lease.Grant) lease.ExtendRequest {
		return lease.ExtendRequest{Key: g.Key, More: g.More, Token: g.Token, TTL: ttl}
	}
	for _, step := range []struct{ after, left time.Duration }{{0, ttl}, {15 * time.Minute, ttl}, {14 * time.Minute, 11 * time.Minute}, {8 * time.Minute, 3 * time.Minute}} {
		d.later(step.after)
		for name, g := range grants {
			more, err := d.extend(again(g))
			if err != nil {
				t.Fatalf("%s, %v later: %v", name, step.after, err)
			}
			d.within(name, more, g, longest)
			if left := more.Validity(); left > step.left || left < step.left/2 {
				t.Errorf("%s has %v, want about %v", name, left, step.left)
			}
		}
	}
	d.later(3 * time.Minute)
	for name, g := range grants {
		for range 2 {
			if _, err := d.extend(again(g)); !errors.Is(err, engine.ErrNotHeld) {
				t.Errorf("%s, beyond its longest time: %v, want %v", name, err, engine.ErrNotHeld)
			}
		}
	}
	if n := d.Engine.Counts.Overdue.Load(); n < 1 || n > int64(len(grants)) {
		t.Errorf("%d are counted as overdue, want each once", n)
	}
	d.later(2 * time.Minute) // copies last for a master timeout longer
	for name := range grants {
		if _, err := d.lock(lease.LockRequest{Key: engine.Key(name), TTL: time.Minute}); err != nil {
			t.Errorf("%s is not free then: %v", name, err)
		}
	}
}

func TestMaxHold_ALockWithoutALongestTimeHasNone(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	for _, r := range keyed() {
		g := d.take(r)
		for range 4 {
			d.later(15 * time.Minute)
			if _, err := d.extend(lease.ExtendRequest{Key: g.Key, More: g.More, Token: g.Token, TTL: ttl}); err != nil {
				t.Fatalf("%s: %v", g.Key, err)
			}
		}
		d.unlock(g.Key, g.Token)
		for _, more := range g.More {
			d.unlock(more, g.Token)
		}
	}
}

// What the client requests with the token, the owner or the value that it holds the lock with is the same hold.
func TestMaxHold_FurtherRequestsDoNotBeginAnew(t *testing.T) {
	t.Parallel()
	const token = "a-token-of-its-own"
	d := newEmbedded(t)
	for name, one := range map[string]struct{ first, next lease.LockRequest }{
		"the same token":    {lease.LockRequest{Token: token}, lease.LockRequest{Token: token}},
		"reader to writer":  {lease.LockRequest{Token: token, Mode: lease.Readers}, lease.LockRequest{Token: token}},
		"writer to reader":  {lease.LockRequest{Token: token}, lease.LockRequest{Token: token, Mode: lease.Readers}},
		"the same permit":   {lease.LockRequest{Token: token, Mode: lease.PermitsOf(2)}, lease.LockRequest{Token: token, Mode: lease.PermitsOf(2)}},
		"a further level":   {lease.LockRequest{Mode: lease.LevelsOf(token)}, lease.LockRequest{Mode: lease.LevelsOf(token)}},
		"a generated token": {lease.LockRequest{}, lease.LockRequest{}},
		"one that waits":    {lease.LockRequest{Token: token}, lease.LockRequest{Token: token}},
		"several keys":      {lease.LockRequest{Token: token, More: []engine.Key{"l1"}}, lease.LockRequest{Token: token, More: []engine.Key{"l2"}}},
	} {
		t.Run(name, func(t *testing.T) {
			one.first.Key, one.first.TTL, one.first.Mode = engine.Key(name), ttl, heldFor(one.first.Mode, longest)
			one.next.Key, one.next.TTL, one.next.Mode = engine.Key(name), ttl, heldFor(one.next.Mode, longest)
			g := d.take(one.first)
			if g.Token != token && lease.LevelOwner(one.next.Mode) == "" {
				one.next.Token = g.Token
			}
			for range 2 {
				d.later(15 * time.Minute)
				a := d.ask(func(done func(lease.Grant, error)) {
					if name == "one that waits" {
						d.wait(one.next, done)
					} else {
						d.MaxHold.Lock(nil, one.next, done)
					}
				})
				if a.err != nil {
					t.Fatal(a.err)
				}
				d.Idle()
				d.within("a further grant", a.grant, g, longest)
				more, err := d.extend(lease.ExtendRequest{Key: engine.Key(name), Token: a.grant.Token, TTL: ttl})
				if err != nil {
					t.Fatal(err)
				}
				d.within("its extension", more, g, longest)
			}
			d.later(15 * time.Minute)
			if _, err := d.lock(one.next); (err != nil) != (name == "a generated token") {
				t.Errorf("when its time is over: %v", err)
			}
		})
	}
}

// A deadline that a lock has left behind stands for no other lock.
func TestMaxHold_BeginsAnewAfterARelease(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, 2*longest)
	one, two := newDaemon(c), newDaemon(c)
	for name, r := range keyed() {
		if r.Token == "" || len(r.More) > 0 {
			continue
		}
		r.Mode = heldFor(r.Mode, ttl+time.Minute)
		g := one.take(r)
		two.unlock(r.Key, g.Token)
		r.Mode = heldFor(r.Mode, longest)
		again := one.take(r)
		if more, err := one.extend(lease.ExtendRequest{Key: r.Key, Token: g.Token, TTL: longest}); err != nil || more.Until()-again.Began() < longest*9/10 {
			t.Errorf("%s: it has %v (%v), want %v", name, more.Until()-again.Began(), err, longest)
		}
	}
}

func TestMaxHold_AnyDaemonEndsIt(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, 2*longest)
	one, two := newDaemon(c), newDaemon(c)
	for name, r := range keyed() {
		r.Mode = heldFor(r.Mode, ttl+time.Minute)
		g := one.take(r)
		for range 2 {
			more, err := two.extend(lease.ExtendRequest{Key: g.Key, More: g.More, Token: g.Token, TTL: longest})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			two.within(name+", extended through another daemon,", more, g, ttl+time.Minute)
		}
		if g, err := two.extend(lease.ExtendRequest{Key: g.Key, More: g.More, Token: g.Token, TTL: longest, Whole: true}); !errors.Is(err, engine.ErrNotHeld) {
			t.Errorf("%s: its client does not learn that it has less: %v, %v", name, g.Validity(), err)
		}
		if lease.LevelOwner(r.Mode) != "" || lease.HasClientValues(r.Mode) {
			continue
		}
		r.Token, r.TTL = g.Token, longest
		more, err := two.lock(r)
		if err != nil {
			t.Fatalf("%s, again: %v", name, err)
		}
		two.within(name+", requested once more through another daemon,", more, g, ttl+time.Minute)
	}
}

// A client that requests no longest time itself has that of its token. For one that does, a token that it chose
// so that it looks like one with a later deadline is one of its own.
func TestMaxHold_AForgedTokenGainsNothing(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	forged := withDeadline(engine.NewToken(), d.now(0)+(200*24*time.Hour).Milliseconds())
	g := d.take(lease.LockRequest{Key: "k", Token: forged, TTL: ttl, Mode: heldFor(nil, ttl)})
	more, err := d.extend(lease.ExtendRequest{Key: "k", Token: forged, TTL: ttl, Longest: ttl})
	if err != nil {
		t.Fatal(err)
	}
	d.within("it", more, g, ttl)
	d.unlock("k", forged)
	plain := engine.NewToken() // as that of a daemon without longest times
	g = d.take(lease.LockRequest{Key: "k", Token: plain, TTL: ttl, Mode: heldFor(nil, ttl)})
	if more, err = d.extend(lease.ExtendRequest{Key: "k", Token: plain, TTL: ttl, Longest: ttl}); err != nil {
		t.Fatal(err)
	}
	d.within("it", more, g, ttl)
}

// A lock that was taken before there was a longest time begins with the first extension.
func TestMaxHold_CountsFromTheFirstExtensionIfThereWasNone(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	g := d.take(lease.LockRequest{Key: "k", TTL: ttl})
	began := g
	for i := range 4 {
		more, err := d.extend(lease.ExtendRequest{Key: "k", Token: g.Token, TTL: ttl, Longest: longest})
		if i < 3 && err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			began = more
		}
		d.within("it", more, began, longest)
		d.later(15 * time.Minute)
	}
	if _, err := d.extend(lease.ExtendRequest{Key: "k", Token: g.Token, TTL: ttl, Longest: longest}); !errors.Is(err, engine.ErrNotHeld) {
		t.Errorf("%v, want %v", err, engine.ErrNotHeld)
	}
}

// EXPIRE, and SET that gives the lock another value.
func TestMaxHold_AWriteDoesNotBeginAnew(t *testing.T) {
	t.Parallel()
	d := newEmbedded(t)
	d.take(lease.LockRequest{Key: "k", Token: "first", Mode: heldFor(lease.Valued, longest), TTL: ttl})
	expires := lease.WriteRequest{Key: "k", Effect: lease.WriteExpires, TTL: ttl}
	replaces := lease.WriteRequest{Key: "k", Effect: lease.WriteReplaces, Equal: "first", Value: "second", TTL: ttl}
	if !d.write(expires) || !d.write(replaces) {
		t.Fatal("what ends before its longest time is refused")
	}
	d.later(15 * time.Minute)
	if expires.Equal = "second"; !d.write(expires) {
		t.Fatal("what ends before its longest time is refused")
	}
	d.later(15 * time.Minute)
	replaces.Equal, replaces.Value = "second", "third"
	for _, r := range []lease.WriteRequest{expires, {Key: "k", Effect: lease.WriteExpires, TTL: ttl}, replaces} {
		if d.write(r) {
			t.Errorf("%+v lasts beyond the longest time", r)
		}
	}
	if expires.TTL = 9 * time.Minute; !d.write(expires) {
		t.Error("what is left is refused")
	}
	if !d.write(lease.WriteRequest{Key: "k", Effect: lease.WriteReplaces, Value: "another", TTL: ttl, Longest: longest}) {
		t.Error("it cannot be taken from its holder")
	}
	d.later(19 * time.Minute)
	if expires.Equal, expires.TTL = "another", ttl; !d.write(expires) {
		t.Error("the next holder has the former one's deadline")
	}
}

// A HOLD is renewed up to its longest time, and its holder receives the reason.
func TestMaxHold_HoldEndsWithItsReason(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		name    string
		maxTime time.Duration
		want    error
		token   engine.Token
	}{{"alone", 0, renew.ErrLostOverdue, ""}, {"before max-ms", 2 * longest, renew.ErrLostOverdue, "a-token-of-its-own"}, {"after max-ms", ttl, renew.ErrLostMax, ""}} {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			d := newEmbedded(t)
			seen := &seen{}
			end := d.Events.Listen(0, seen.note)
			defer end()
			lost := make(chan error, 2)
			g := d.take(lease.LockRequest{Key: "k", Token: one.token, TTL: ttl, Mode: heldFor(nil, longest)})
			d.holds.Begin(g, renew.Terms{MaxTime: one.maxTime, OnEnd: func(_ lease.Grant, reason error, _ time.Duration) { lost <- reason }})
			for i := range 3 { // two thirds of the ttl: it has been renewed once a third was over
				renewed := d.Engine.Counts.Extended.Load()
				d.later(12 * time.Minute)
				if one.maxTime == ttl && i > 0 {
					continue // it is not renewed any more
				}
				redlocktest.Eventually(t, "it is renewed", func() bool { return d.Engine.Counts.Extended.Load() > renewed })
			}
			if g, err := d.extend(lease.ExtendRequest{Key: "k", Token: g.Token, TTL: ttl}); err == nil {
				d.within("what its holder extends", g, g, longest)
			}
			d.later(5 * time.Minute)
			if reason := redlocktest.Receive(t, lost); !errors.Is(reason, one.want) {
				t.Errorf("it ended with %q, want %q", reason, one.want)
			}
			if one.want != renew.ErrLostOverdue {
				return
			}
			redlocktest.Eventually(t, "the event", func() bool { return seen.has(events.Overdue) })
			if n := d.Engine.Counts.Overdue.Load(); n != 1 {
				t.Errorf("%d are counted as overdue, want 1", n)
			}
		})
	}
}

// seen are the kinds of the events of a database.
type seen struct {
	mu    sync.Mutex
	kinds []events.Kind
}

func (s *seen) note(e events.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds = append(s.kinds, e.Kind)
}

func (s *seen) has(k events.Kind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.kinds, k)
}

// A release that is sent before the answer of the request comes behind it.
func TestMaxHold_AReleaseFollowsItsRequest(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, 2*longest)
	d := newDaemon(c)
	for i := range 20 {
		granted, released := make(chan error, 1), make(chan bool, 1)
		token := engine.Token(fmt.Sprintf("token-%d", i))
		d.MaxHold.Lock(nil, lease.LockRequest{Key: "k", Token: token, TTL: ttl, Mode: heldFor(nil, longest)}, func(_ lease.Grant, err error) { granted <- err })
		d.MaxHold.Unlock(nil, lease.UnlockRequest{Key: "k", Token: token}, func(was bool, err error) { released <- was && err == nil })
		if err := redlocktest.Receive(t, granted); err != nil || !redlocktest.Receive(t, released) {
			t.Fatalf("granted: %v, and the release found nothing", err)
		}
	}
	if d.begun.count.Load() != 0 || len(d.begun.byID) != 0 {
		t.Error("what has been sent is kept")
	}
}

// A client may leave before its wait has begun.
func TestMaxHold_AWaitThatIsLeftEnds(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, 2*longest)
	d := newDaemon(c)
	holder := d.take(lease.LockRequest{Key: "k", TTL: ttl})
	out := make(chan error, 2)
	leave := d.wait(lease.LockRequest{Key: "k", Token: "a-token-of-its-own", TTL: ttl, Mode: heldFor(nil, longest)}, func(_ lease.Grant, err error) { out <- err })
	leave()
	if err := redlocktest.Receive(t, out); !errors.Is(err, wait.ErrLeft) {
		t.Errorf("%v, want %v", err, wait.ErrLeft)
	}
	d.unlock("k", holder.Token)
}

// Locks without a longest time write nothing more, and read nothing but once for a lease of another daemon.
func TestMaxHold_CostsNothingWithoutOne(t *testing.T) {
	t.Parallel()
	c := redlocktest.NewCluster(t, 3, 2*longest)
	one, two := newDaemon(c), newDaemon(c)
	for _, r := range keyed() {
		g := one.take(r)
		if _, err := one.extend(lease.ExtendRequest{Key: g.Key, More: g.More, Token: g.Token, TTL: ttl}); err != nil {
			t.Fatal(err)
		}
	}
	if names := c.Masters[0].Keys(); slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "redlockd:until:") }) {
		t.Errorf("a deadline is written: %q", names)
	}
	before := c.Calls(t, "set")
	for range 3 {
		if _, err := two.extend(lease.ExtendRequest{Key: "chosen", Token: "a-token-of-its-own", TTL: ttl}); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.Calls(t, "set") - before; n != 0 {
		t.Errorf("%d writes beside the extensions", n)
	}
}

func TestToken_CarriesItsDeadline(t *testing.T) {
	t.Parallel()
	tokens := engine.TokensOf("a-daemon")
	for i := range int64(500) {
		at := 1_700_000_000_000 + i*i*977
		plain := tokens()
		marked := withDeadline(plain, at)
		level := engine.LevelOf("an-owner", marked)
		if deadlineIn(marked) != at || deadlineIn(level) != at || deadlineIn(plain) != 0 || deadlineIn(engine.LevelOf("an-owner", plain)) != 0 {
			t.Fatalf("%s: %d, and %s: %d, want %d", marked, deadlineIn(marked), plain, deadlineIn(plain), at)
		}
		if !marked.GrantedBy("a-daemon") || !isGenerated(marked) || !isGenerated(plain) || engine.OwnerOf(level) != "an-owner" {
			t.Fatalf("%s has not the form of a generated token", marked)
		}
	}
	for _, own := range []engine.Token{"", "x", "a-token-of-its-own", "abcdefghijklmnopqrstuvwxyz.", "abcdefghijklmnopqrstuvwxyzB"} {
		if deadlineIn(own) != 0 || withDeadline("short", 5) != "short" {
			t.Errorf("%q has a deadline", own)
		}
	}
}
