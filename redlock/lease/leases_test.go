package lease

// leases_test.go: what the operations leave behind in the daemon, and what goes up.

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/faulty"
	"redlockd/pool/setup"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// A refusal that comes after the grant goes up; one before it is known to the ballot.
func TestBallot_ARefusalIsReportedBeforeAndAfterTheGrant(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t)
	made := &lockBallot{call: &acquireCall{leases: d.Leases, request: LockRequest{Key: "k"}}, mode: &plainMode{}, token: "a token"}
	made.won = true
	if made.WasRefused() {
		t.Error("refused before any answer")
	}
	made.Late(pool.Answer{Sent: true, Seal: pool.Seal{Good: true}, Reply: pool.Reply{Kind: pool.ReplyNil}}, quorum.Granted)
	want := []engine.LeaseID{{Key: "k", Token: "a token"}}
	if got := <-d.changes.refused; !slices.Equal(got, want) || !made.WasRefused() {
		t.Errorf("a refusal of %v was reported, want %v; the ballot was refused: %v", got, want, made.WasRefused())
	}
}

// Tries beyond the bound wait in the daemon, and none is left when all are answered.
func TestHotKey_WhatIsBeyondTheBoundWaits(t *testing.T) {
	t.Parallel()
	const tries = 1000
	d := newPureDaemon(t)
	d.take(LockRequest{Key: "k"})
	one := &acquireCall{request: LockRequest{Key: "k"}}
	eventually(t, "the first try, which is answered, is counted no more", func() bool { return d.hot.tries[d.hot.counter(one)].Load() == 0 })
	answers := make(chan error, tries)
	var b engine.Batch
	for range tries {
		d.Lock(&b, LockRequest{Key: "k", TTL: time.Minute}, func(_ Grant, err error) { answers <- err })
	}
	if n := d.hot.waiting.Load(); n != tries-maxTries {
		t.Errorf("%d tries wait in the daemon, want %d", n, tries-maxTries)
	}
	b.Send()
	for range tries {
		if err := <-answers; !errors.Is(err, engine.ErrHeld) {
			t.Errorf("%v, want ErrHeld", err)
		}
	}
	if n := d.hot.waiting.Load(); n != 0 {
		t.Errorf("%d tries still wait", n)
	}
}

// Notes of leases that end are not remembered, and a lock without an expiry has none.
func TestNotes_AreForgottenWithTheLease(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t)
	d.ofDaemon().notes.everyHolder = true
	notes := func() (n int) {
		d.records.mu.Lock()
		defer d.records.mu.Unlock()
		for _, known := range d.records.current {
			if known.about != "" {
				n++
			}
		}
		return n
	}
	g := d.take(LockRequest{Key: "k", More: []engine.Key{"z"}, Requester: &Requester{Meta: "both"}})
	if n := notes(); n != 2 {
		t.Errorf("%d notes are remembered, want 2", n)
	}
	for _, key := range g.Keys() {
		if was, err := d.unlock(key, g.Token); !was || err != nil {
			t.Errorf("unlock %s: %v, %v", key, was, err)
		}
	}
	d.take(LockRequest{Key: "endless", Token: "my own value", TTL: Endless, Mode: Valued})
	if n := notes(); n != 0 {
		t.Errorf("%d notes are remembered", n)
	}
}

// The extension is decided after the release has been asked for: a copy that it
// re-created would stand until it expires, and nobody would ever release it.
func TestLocker_AnExtensionReleasedMeanwhileRepairsNothing(t *testing.T) {
	t.Parallel()
	for _, granted := range []string{"here", "by another daemon"} {
		d := newPureDaemon(t)
		g := d.take(LockRequest{Key: "k"})
		d.quiet()
		d.engine.Pool.Embedded().At(4).Server().Del("k")
		if granted != "here" {
			d.records.release(engine.LeaseID{Key: "k", Token: g.Token}, 0)
		}
		answers := make(chan error, 2) // 2: both answers
		var b engine.Batch
		d.Extend(&b, ExtendRequest{Key: "k", Token: g.Token, TTL: time.Minute}, func(_ Grant, err error) { answers <- err })
		d.Unlock(&b, UnlockRequest{Key: "k", Token: g.Token}, func(_ bool, err error) { answers <- err })
		b.Send()
		for range 2 {
			if err := <-answers; err != nil {
				t.Fatalf("granted %s: %v", granted, err)
			}
		}
		d.quiet()
		if n := d.holders(0, "k", string(g.Token)); n != 0 {
			t.Errorf("granted %s: %d copies were re-created after the release", granted, n)
		}
	}
}

// Requests with one token for the same keys in other orders wait for one another in turn,
// never in a cycle.
func TestMulti_OneTokenInManyOrdersNeverWaitsForItself(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t)
	orders := [][]engine.Key{{"a", "b", "c"}, {"c", "b", "a"}, {"b", "c", "a"}, {"b"}, {"c", "a"}}
	answers := make(chan error, 20*len(orders))
	for range 20 {
		for _, keys := range orders {
			d.Lock(nil, LockRequest{Key: keys[0], More: keys[1:], Token: "a-token-of-the-client", TTL: time.Minute}, func(_ Grant, err error) { answers <- err })
		}
	}
	for range cap(answers) {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	// The last answered call leaves the queue just after that.
	eventually(t, "no operation is queued", d.tokenQueue.idle)
}

// Keys with the same counter wait for one another's tries, and none is forgotten.
func TestHotKey_EveryTryIsAnsweredOnceWhateverSharesItsCounter(t *testing.T) {
	const callers, rounds = 200, 20
	one := newPureDaemon(t)
	named := func(i int) engine.Key { return engine.Key(fmt.Sprint("key-", i)) }
	keys := []engine.Key{"k"}
	like := one.hot.counter(&acquireCall{request: LockRequest{Key: "k"}})
	for i := 0; len(keys) < 4; i++ {
		if one.hot.counter(&acquireCall{request: LockRequest{Key: named(i)}}) == like {
			keys = append(keys, named(i))
		}
	}
	var granted, answered atomic.Int64
	done := make(chan struct{}, callers)
	for i := range callers {
		go func() {
			defer func() { done <- struct{}{} }()
			for r := range rounds {
				key := keys[(i+r)%len(keys)]
				g, err := one.lock(LockRequest{Key: key, TTL: time.Minute})
				answered.Add(1)
				if err == nil {
					granted.Add(1)
					if was, err := one.unlock(key, g.Token); !was || err != nil {
						t.Errorf("unlock %q: %v, %v", key, was, err)
					}
				}
			}
		}()
	}
	for range callers {
		<-done
	}
	if n := answered.Load(); n != callers*rounds || granted.Load() == 0 {
		t.Errorf("%d answers and %d grants for %d tries", n, granted.Load(), callers*rounds)
	}
	if n := one.hot.waiting.Load(); n != 0 || len(one.hot.lists) != 0 {
		t.Errorf("%d tries wait in %d lists when all are answered", n, len(one.hot.lists))
	}
	for i := range one.hot.tries {
		if n := one.hot.tries[i].Load(); n != 0 {
			t.Errorf("counter %d is %d when nothing is in flight", i, n)
		}
	}
}

// Two masters can step down in the next ballot, the third one need not be waited for.
func TestShared_AWriterIsDowngradedWithoutTheSlowMaster(t *testing.T) {
	t.Parallel()
	d, servers, relay := newRelayedDaemon(t)
	const token = "a token of the client's"
	d.take(LockRequest{Key: "k", Token: token})
	ends := func(i int) int64 {
		end, _ := servers[i].Do("PEXPIRETIME", "k")
		n, _ := end.(int64)
		return n
	}
	eventually(t, "all have it", func() bool { return ends(0) > 0 && ends(1) > 0 && ends(2) > 0 })
	relay.Pause()
	answer := make(chan error, 1)
	d.engine.EnterAlways()
	call := &acquireCall{
		leases: d.Leases, group: d.engine.Pool.Group(0), began: d.engine.Recent(), done: func(_ Grant, err error) { answer <- err },
		request: LockRequest{Key: "k", TTL: time.Minute, Mode: Readers, Token: token},
	}
	// As after a first ballot, behind which the copy on b was moved.
	call.startBallot(nil, &sharedMode{downgradeBallots: 1, downgrade: &downgrade{ends: [quorum.MaxMasters]int64{ends(0), ends(1) - 8, 0}}})
	if err := <-answer; err != nil {
		t.Error(err)
	}
}

// newRelayedDaemon is a daemon on three redis-servers, with a relay before the last.
func newRelayedDaemon(t *testing.T) (*pureDaemon, []*faulty.Server, *faulty.Relay) {
	t.Helper()
	servers := faulty.StartGroup(t, 3)
	o := pool.Options{MaxTTL: 3 * time.Minute, MasterTimeout: 2 * time.Second}
	for i, s := range servers {
		o.Masters = append(o.Masters, pool.Master{Name: string(rune('a' + i)), Network: "tcp", Address: s.Addr()})
	}
	if err := setup.Bootstrap(t.Context(), o, setup.BootstrapTerms{}, t.Output()); err != nil {
		t.Fatal(err)
	}
	relay := faulty.NewRelay(servers[2].Addr())
	t.Cleanup(relay.Close)
	o.Masters[2].Address = relay.Addr()
	d := newDaemonOn(t, o)
	eventually(t, "all masters vote", func() bool {
		return !slices.ContainsFunc(d.engine.Pool.Group(0).Statuses(), func(s pool.Status) bool { return s.State != "voting" })
	})
	return d, servers, relay
}
