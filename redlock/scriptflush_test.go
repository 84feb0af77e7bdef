package redlock

// scriptflush_test.go: SCRIPT FLUSH on the masters. No request fails for it.

import (
	"fmt"
	"testing"
	"time"
)

// flushScripts makes every master forget all scripts.
func (c *cluster) flushScripts() {
	c.t.Helper()
	for i := range c.servers {
		c.do(i, "SCRIPT", "FLUSH")
	}
}

func TestScriptFlush_FailsNoRequest(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon(keeps(long))
	d.volatileIDs()
	shared, permit := LockRequest{Key: "r", Mode: Readers, Token: tokenA}, LockRequest{Key: "p", Mode: PermitsOf(2), Token: tokenA}
	fair, several := LockRequest{Key: "f", Fair: true, Token: tokenA}, LockRequest{Key: "x", More: []Key{"y"}, Token: tokenA}
	var work Work
	var waits chan waited
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{"acquire with TOKEN", func() error { d.get(LockRequest{Key: "k", Token: tokenA}); return nil }},
		{"acquire of a reader", func() error { d.get(shared); return nil }},
		{"acquire of a permit", func() error { d.get(permit); return nil }},
		{"acquire with FAIR", func() error { d.get(fair); return nil }},
		{"acquire of several keys", func() error { d.get(several); return nil }},
		{"refusal", func() error { d.held(LockRequest{Key: "k", Token: tokenB}); return nil }},
		{"wait with FAIR", func() error { waits, _ = d.stands("f", LockRequest{Token: tokenB}); return nil }},
		{"extension", func() error { _, err := d.extend("k", tokenA, long); return err }},
		{"extension of a reader", func() error { _, err := d.extend("r", tokenA, long); return err }},
		{"extension of several keys", func() error { _, err := d.prolongAll(tokenA, long, "x", "y"); return err }},
		{"upgrade", func() error { d.get(LockRequest{Key: "r", Token: tokenA}); return nil }},
		{"downgrade", func() error { d.get(shared); return nil }},
		{"retake", func() error {
			_, err := d.retake("of a client", 20*time.Second, "s")
			return err
		}},
		{"view", func() error { _, err := d.tryToSee("k"); return err }},
		{"list", func() error { _, err := d.list(Listing{Count: 100}); return err }},
		{"ids", func() error { d.draw("n", 3); return nil }},
		{"work", func() error {
			work = d.find(WorkRequest{Key: "w", Max: 3, Timeout: long, Keep: long}, WorkAcquired, 1)
			return nil
		}},
		{"extension of work", func() error { _, err := d.prolong(work, long); return err }},
		{"end of work", func() error { d.finish(work, true); return nil }},
		{"release", func() error { d.free("k", tokenA); return nil }},
		{"release of a reader", func() error { d.free("r", tokenA); return nil }},
		{"release of a permit", func() error { d.free("p", tokenA); return nil }},
		{"release with a waiter", func() error { d.free("f", tokenA); return receive(t, waits).err }},
		{"release of the waiter", func() error { d.free("f", tokenB); return nil }},
		{"release of several keys", func() error { d.free("x", tokenA); d.free("y", tokenA); return nil }},
	} {
		d.settled(0, 1, 2) // a master that loses them again while they are loaded gets a new connection
		c.flushScripts()
		if err := step.run(); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
	}
	for i, m := range d.Reports(0) {
		if m.PendingReleases != 0 {
			t.Errorf("master %s: %d releases are pending", name(i), m.PendingReleases)
		}
	}
	if n := d.engine.Pool.Group(0).Counters().Admissions; n != int64(len(c.servers)) {
		t.Errorf("%d admissions, want one for each master", n)
	}
}

// Requests of all modes that share flushes.
func TestScriptFlush_FailsNoneOfManyRequestsAtOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	modes := []LockRequest{{}, {Fair: true}, {Mode: Readers}, {Mode: PermitsOf(3)}, {}}
	for round := range 8 {
		var b Batch
		answers := make(chan lockAnswer, 200) // one for each request
		for i := range cap(answers) {
			r := modes[i%len(modes)]
			r.Key, r.TTL, r.Token = Key(fmt.Sprintf("k-%d", i)), long, Token(fmt.Sprintf("token-%d-%d", round, i))
			if i%len(modes) == 4 {
				r.Token = ""
				r.More = []Key{r.Key + "-more"}
			}
			d.Lock(&b, r, func(g Grant, err error) { answers <- lockAnswer{g, err} })
		}
		d.settled(0, 1, 2)
		c.flushScripts()
		b.Send()
		var requests []UnlockRequest
		for range cap(answers) {
			a := receive(t, answers)
			if a.err != nil {
				t.Fatalf("round %d: %v", round, a.err)
			}
			for _, key := range append(a.grant.More, a.grant.Key) {
				requests = append(requests, UnlockRequest{Key: key, Token: a.grant.Token})
			}
		}
		released := make(chan unlockAnswer, len(requests))
		var releases Batch
		for _, r := range requests {
			d.Unlock(&releases, r, func(was bool, err error) { released <- unlockAnswer{was, err} })
		}
		d.settled(0, 1, 2)
		c.flushScripts()
		releases.Send()
		for range cap(released) {
			if a := receive(t, released); a.err != nil || !a.was {
				t.Fatalf("round %d: release: %v, %v", round, a.was, a.err)
			}
		}
	}
}
