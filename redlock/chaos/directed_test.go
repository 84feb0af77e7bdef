package chaos

// directed_test.go: two ways in which a master can answer from a memory that is
// not the one that promised, and that random faults find rarely. A has the lock on
// masters a and c, or a and b; then a forgets; B must not get it.

import (
	"testing"
	"time"

	"redlockd/redlock/checker"
)

// isolate keeps a daemon from a master.
func (s *stand) isolate(daemon, master int) {
	s.t.Helper()
	s.daemons[daemon].links[master].Refuse()
	s.daemons[daemon].links[master].Cut()
	if !eventually(func() bool { return s.daemons[daemon].info("masters", "masters_voting") == "2" }) {
		s.t.Fatal("the daemon did not notice that a master is away")
	}
}

// contest has daemon 0 lock, then something happen, and daemon 1 try many times, and
// once at least, within the lease. The checker reads both.
func (s *stand) contest(happens func()) {
	s.t.Helper()
	record := checker.NewRecorder(nil)
	var held checker.CallRecord
	if !eventually(func() bool {
		s.lock(record, 0)
		h := record.History()
		held = h[len(h)-1]
		return held.Outcome == checker.OK
	}) {
		s.t.Fatalf("daemon 0 did not get the lock: %v", &held)
	}
	happens()
	tries := 0
	for ; tries < attempts && record.Now() < held.Complete+held.Validity; tries++ {
		s.lock(record, 1)
		time.Sleep(look)
	}
	if tries == 0 {
		s.t.Fatalf("what happened lasted longer than the lease of %v: this proves nothing", held.Validity)
	}
	if err := checker.Check(record.History()); err != nil {
		s.t.Error(err)
	}
}

const (
	longLease = 40 * time.Second
	attempts  = 200
)

// lock sends one request to a daemon, and never releases.
func (s *stand) lock(record *checker.Recorder, daemon int) {
	call := record.Client().Begin(checker.Acquire, "k", "")
	began := record.Now()
	reply, err := s.daemons[daemon].ask("DLOCK", "k", s.plan.maxLease.Milliseconds())
	switch grant, ok := reply.([]any); {
	case err != nil:
		call.Unknown()
	case !ok:
		call.Refused()
	default:
		call.GrantedUntil(grant[0].(string), deadline(began, grant[1]), grant[2].(int64))
	}
}

func TestExclusion_HoldsWhenAnOldMemoryIsSwappedBack(t *testing.T) {
	if testing.Short() {
		t.Skip("processes under faults are evidence: make test-long")
	}
	t.Parallel()
	s := newStand(t, plan{masters: 3, daemons: 2, maxLease: 8 * time.Second})
	v := &victim{stand: s, scope: onMemory}
	flushAll(v) // or the other database would carry an identity of its own
	s.awaitAge(0)
	swap(v)
	s.awaitAge(0)
	s.isolate(0, 1)
	s.contest(func() { swap(v) })
}

func TestExclusion_HoldsWhenAReplicaRestartsWithItsFile(t *testing.T) {
	if testing.Short() {
		t.Skip("processes under faults are evidence: make test-long")
	}
	t.Parallel()
	s := newStand(t, plan{masters: 3, daemons: 2, durable: true, maxLease: longLease})
	v := &victim{stand: s, scope: onMemory}
	s.isolate(0, 2)
	s.contest(func() { replicateAndRestart(v) }) // c, whose memory it takes, does not have the lock
}

// awaitAge waits until a master has lost its old identity, and votes again for
// everybody.
func (s *stand) awaitAge(master int) {
	s.t.Helper()
	before := s.identity(master)
	if !eventually(func() bool { return s.identity(master) != nil && s.aged(master) }) {
		s.t.Fatalf("master %s does not get as old as it must, its identity was %q", masterName(master), before)
	}
	for _, d := range s.daemons {
		d.awaitVotes()
	}
}
