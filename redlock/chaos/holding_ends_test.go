package chaos

// holding_ends_test.go: locks that a killed daemon leaves. No daemon renews the lock, so
// it ends with its ttl, and not before.

import (
	"testing"
	"time"

	"redlockd/redlock/checker"
)

func TestHold_EndsWithItsLeaseWhenItsDaemonIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("processes under faults are evidence: make test-long")
	}
	t.Parallel()
	const ttl = 5 * time.Second // a busy machine may stop the daemon for a while
	s := newStand(t, plan{masters: 3, daemons: 2, maxLease: ttl})
	r := &run{t: &ledger{TB: t}, stand: s, record: checker.NewRecorder(nil)}
	r.answers = newAnswers(r.record.Now)
	d := newClientGroup(r, "hold", 1)
	holder, next := d.client(r.caller(1)), d.client(r.caller(2))
	defer holder.hangUp()
	defer next.hangUp()
	holder.sit(t, 0)
	next.sit(t, 1)
	l := holder.take(wants{keys: d.keys, ttl: ttl, words: []any{"HOLD"}, holds: true})
	if l == nil {
		t.Fatal("the lock was not given")
	}
	if reason, err := holder.talk.awaitLoss(l.token, 2*ttl); reason != "" || err != nil {
		t.Fatalf("the lock was lost: %s, %v", reason, err)
	}
	if held, known := holder.extend(l); !held || !known {
		t.Fatal("after two leases the lock was not held any more")
	}
	s.daemons[0].Kill()
	n := next.take(wants{keys: d.keys, ttl: ttl, wait: waitTimeout})
	if n == nil {
		t.Fatalf("no client was given the lock within %v, its daemon was killed", waitTimeout)
	}
	if _, known := next.giveBack(n); !known {
		t.Error("the release was not answered")
	}
	if _, err := d.check(checker.Check); err != nil {
		t.Error(err)
	}
	s.awaitEmpty()
}

// sit talks to one daemon and no other.
func (c *client) sit(t *testing.T, daemon int) {
	t.Helper()
	var err error
	c.daemon = daemon
	if c.talk, err = dialTalk(c.stand.daemons[daemon].Addr(), c.group.record.Now); err != nil {
		t.Fatal(err)
	}
}
