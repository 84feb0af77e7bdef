package redlock

// denied_test.go: the masters' user may not use some keys. Requests for them fail, and no others.

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"redlockd/pool"
	"redlockd/pool/faulty"
)

// deniedKey is the one that the user of narrowed may not use.
const deniedKey = "other"

// narrowed makes a user for the locks whose names begin with "lock", and returns the trait of its
// daemons, with their tap and log.
func (c *cluster) narrowed() (trait, *tap, *faulty.Log) {
	c.t.Helper()
	for i := range c.servers {
		c.do(i, "ACL", "SETUSER", "narrow", "on", ">pw", "&*", "~redlockd:*", "~lock*", "+@all")
	}
	p, log := new(tap), new(faulty.Log)
	return func(d *daemon, o *pool.Options) {
		for i := range o.Masters {
			o.Masters[i].Username, o.Masters[i].Password = "narrow", "pw"
		}
		o.Logger = slog.New(slog.NewTextHandler(log, nil))
		blind(d, o)
		p.tapped(d, o)
	}, p, log
}

// wasShared wants a call to every master with the denied key and another one, once each, and a line of
// the log for each master.
func (p *tap) wasShared(c *cluster, log *faulty.Log) {
	c.t.Helper()
	for i := range c.servers {
		calls := 0
		for _, flush := range p.to(name(i)) {
			for _, command := range flush {
				if strings.HasPrefix(command, "EVALSHA") && strings.Contains(command, " "+deniedKey+" ") && strings.Contains(command, " lock-1 ") {
					calls++
				}
			}
		}
		if calls != 1 {
			c.t.Errorf("master %s: %d calls have the denied key and another one, want 1", name(i), calls)
		}
		if n := strings.Count(log.String(), "master="+name(i)+" db=0 err=\"NOPERM"); n != 1 {
			c.t.Errorf("master %s: %d lines about the denial, want 1", name(i), n)
		}
	}
}

func TestDenied_AcquiresOfOtherKeysThatShareTheCallAreGranted(t *testing.T) {
	t.Parallel()
	for kind, r := range map[string]LockRequest{
		"shared": {Mode: Readers}, "permits": {Mode: PermitsOf(4)}, "fair": {Fair: true}, "multi": {},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3, long)
			narrow, p, log := c.narrowed()
			d := c.daemon(narrow)
			var b Batch
			answers := map[Key]chan lockAnswer{}
			for _, key := range []Key{"lock-1", "lock-2", deniedKey, "lock-3"} {
				answer := make(chan lockAnswer, 1)
				answers[key], r.Key, r.TTL = answer, key, long
				if kind == "multi" {
					r.More = []Key{"lock-more-" + key}
				}
				d.Lock(&b, r, func(g Grant, err error) { answer <- lockAnswer{g, err} })
			}
			b.Send()
			for key, answer := range answers {
				if a := receive(t, answer); key == deniedKey {
					noQuorum(t, a.err, "NOPERM")
				} else if a.err != nil {
					t.Errorf("%s: %v", key, a.err)
				} else {
					d.idle()
					d.free(key, a.grant.Token)
				}
			}
			p.wasShared(c, log)
		})
	}
}

func TestDenied_ReleasesOfOtherKeysThatShareTheCallAreExecuted(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	narrow, p, log := c.narrowed()
	all, d := c.daemon(), c.daemon(narrow)
	var b Batch
	answers := map[Key]chan unlockAnswer{}
	for _, key := range []Key{"lock-1", deniedKey, "lock-2", "lock-3"} {
		answer := make(chan unlockAnswer, 1)
		answers[key] = answer
		token := all.take(key, long).Token
		if key == "lock-3" {
			token = "not-its-token-at-all"
		}
		d.Unlock(&b, UnlockRequest{Key: key, Token: token}, func(was bool, err error) { answer <- unlockAnswer{was, err} })
	}
	b.Send()
	for key, answer := range answers {
		a := receive(t, answer)
		if key == deniedKey {
			noQuorum(t, a.err, "NOPERM")
		} else if a.err != nil || a.was != (key != "lock-3") {
			t.Errorf("%s: %v, %v", key, a.was, a.err)
		}
	}
	d.idle()
	p.wasShared(c, log)
	if left := fmt.Sprint(c.copies("lock-1"), c.copies("lock-2")); strings.Trim(left, "[] ") != "" {
		t.Errorf("left: %s", left)
	}
}
