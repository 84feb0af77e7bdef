// A fleet that moves to redlockd one service at a time. redsync clients directly on the
// masters and DLOCK clients through two daemons contend for the same keys, while masters
// hang now and then. The checker reads the recorded answers of all clients.

package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"math/rand/v2"

	"redlockd/pool/faulty"
	"redlockd/redlock/checker"
)

const (
	contendersOfAKind = 12
	contendedKeys     = 6
	minTTL            = 200 * time.Millisecond
	maxTTL            = 800 * time.Millisecond
	minChanges        = 20
	maxContest        = 5 * time.Minute        // beyond its span
	hang              = 300 * time.Millisecond // of a stopped master
	// maxCopyTTL bounds the TTL of a copy on a master: the maximum TTL, the master timeout
	// of 100 ms that a daemon adds, and room for rounding.
	maxCopyTTL = maxTTL + 300*time.Millisecond
)

func TestMixedFleet_NeverHasTwoHolders(t *testing.T) {
	servers, options := realMasters(t, 5)
	first := launch(t, options...)
	second := launch(t, options...)
	c := newContest(t, servers, []*daemon{first, second})
	c.run(t, mixedSpan(t), true, func() bool { return c.turns().changes >= minChanges })
	if err := checker.Check(c.recorder.History()); err != nil {
		t.Error(err)
	}
	c.expectTurns(t)
	for _, s := range servers {
		expectNothingLeft(t, s)
	}
}

// The contest and its checker detect a violation: with separate namespaces, daemons and
// redsync clients do not exclude one another.
func TestMixedFleet_IsCaughtWhenItDoesNotShareItsKeys(t *testing.T) {
	servers, options := realMasters(t, 5)
	apart := launch(t, append(options, "--key-prefix", "apart:")...)
	c := newContest(t, servers, []*daemon{apart})
	var found *checker.Violation
	c.run(t, time.Second, false, func() bool { return errors.As(checker.CheckExclusion(c.recorder.History()), &found) })
	if err := checker.CheckExclusion(c.recorder.History()); !errors.As(err, &found) {
		t.Errorf("two kinds of clients in separate namespaces were never caught: %v", err)
	}
}

// mixedSpan is the duration of the contest.
func mixedSpan(t *testing.T) time.Duration {
	t.Helper()
	if text := os.Getenv("BENCH_MIXED_SECONDS"); text != "" {
		seconds, err := strconv.Atoi(text)
		if err != nil || seconds < 1 || seconds > 3600 {
			t.Fatalf("BENCH_MIXED_SECONDS: %q, allowed are 1 to 3600", text)
		}
		return time.Duration(seconds) * time.Second
	}
	if testing.Short() {
		return 5 * time.Second
	}
	return 30 * time.Second
}

// contest has the clients, their requests and their answers.
type contest struct {
	recorder   *checker.Recorder
	servers    []*faulty.Server
	contenders []contender
	seed       uint64

	mu      sync.Mutex
	wrong   []error // answers that no contender should get
	unknown int     // calls without a usable answer
}

// contender is one client of either kind.
type contender interface {
	// round requests the lock once and, if it gets it, holds it for a while.
	round(ctx context.Context, w wish)
	close()
}

// wish is the request of a contender in one round. It is drawn from a seed.
type wish struct {
	key    string
	ttl    time.Duration
	hold   time.Duration
	extend bool // once, half-way, if the client can
	lapse  bool // never release: the lock expires
	rest   time.Duration
}

func newContest(t *testing.T, servers []*faulty.Server, daemons []*daemon) *contest {
	t.Helper()
	c := &contest{recorder: checker.NewRecorder(nil), servers: servers, seed: rand.Uint64()}
	t.Logf("seed %d", c.seed)
	for i := range contendersOfAKind {
		c.contenders = append(c.contenders,
			newRedsyncContender(c, addresses(servers)),
			newDLOCKContender(c, daemons[i%len(daemons)].address))
	}
	return c
}

// run runs the contest for the span, with or without hanging masters. On a busy machine it
// runs longer, until enough holds.
func (c *contest) run(t *testing.T, span time.Duration, hangs bool, enough func() bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() {
		defer cancel()
		_ = pause(ctx, span) // the loop looks at the context itself
		for end := time.Now().Add(maxContest); ctx.Err() == nil && !enough() && time.Now().Before(end); {
			_ = pause(ctx, time.Second)
		}
	})
	for i, one := range c.contenders {
		all.Go(func() { c.contend(ctx, one, rand.New(rand.NewPCG(c.seed, uint64(i)))) })
	}
	if hangs {
		c.hangNowAndThen(ctx, rand.New(rand.NewPCG(c.seed, uint64(len(c.contenders)))))
	}
	all.Wait()
	for _, err := range c.wrong {
		t.Error(err)
	}
}

// contend ends with the context, after the round under way.
func (c *contest) contend(ctx context.Context, one contender, random *rand.Rand) {
	defer one.close()
	for ctx.Err() == nil {
		w := drawWish(random)
		one.round(ctx, w)
		_ = pause(ctx, w.rest) // the loop looks at the context itself
	}
}

func drawWish(random *rand.Rand) wish {
	ttl := minTTL + time.Duration(random.Int64N(int64(maxTTL-minTTL)))
	maxHold := 15 * time.Millisecond // most are quick, so that the locks change hands often
	if random.IntN(8) == 0 {
		maxHold = ttl // and some are given back when they are about to end, or have ended
	}
	return wish{
		key:    "contended:" + strconv.Itoa(random.IntN(contendedKeys)),
		ttl:    ttl.Truncate(time.Millisecond),
		hold:   time.Duration(random.Int64N(int64(maxHold))),
		extend: random.IntN(4) == 0,
		lapse:  random.IntN(16) == 0,
		rest:   time.Duration(random.Int64N(int64(20 * time.Millisecond))),
	}
}

// hangNowAndThen stops one master after the other. It returns when the context
// ends, with all masters running.
func (c *contest) hangNowAndThen(ctx context.Context, random *rand.Rand) {
	for pause(ctx, time.Second/2+time.Duration(random.Int64N(int64(time.Second)))) == nil {
		s := c.servers[random.IntN(len(c.servers))]
		s.Stop()
		_ = pause(ctx, hang) // the master runs on in any case
		s.Cont()
	}
}

func (c *contest) unexpected(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrong = append(c.wrong, err)
}

func (c *contest) noAnswer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unknown++
}

// turnCounts has the grants of each kind of client, and the changes between the kinds.
type turnCounts struct{ byDaemon, byRedsync, changes int }

func (c *contest) turns() (n turnCounts) {
	grants := slices.DeleteFunc(c.recorder.History(), func(e checker.CallRecord) bool {
		return e.Op != checker.Acquire || e.Outcome != checker.OK
	})
	last := map[string]bool{}
	for _, e := range grants {
		throughDaemon := e.Fence != 0
		if throughDaemon {
			n.byDaemon++
		} else {
			n.byRedsync++
		}
		if before, ok := last[e.Key]; ok && before != throughDaemon {
			n.changes++
		}
		last[e.Key] = throughDaemon
	}
	return n
}

// expectTurns fails if one kind of client got all locks, or none got any: such a contest
// proves nothing.
func (c *contest) expectTurns(t *testing.T) {
	t.Helper()
	n := c.turns()
	t.Logf("%d grants by daemons, %d by redsync, %d changes between them, %d calls without an answer that counts",
		n.byDaemon, n.byRedsync, n.changes, c.unknown)
	if n.changes < minChanges {
		t.Errorf("the locks changed between the kinds %d times only", n.changes)
	}
}

// expectNothingLeft checks that the keys of a master expire in time. Only the seal, the
// configuration and the records stay.
func expectNothingLeft(t *testing.T, s *faulty.Server) {
	t.Helper()
	isSeal := func(key string) bool { return key == "redlockd:seal" }
	stays := func(key string) bool {
		return isSeal(key) || key == "redlockd:acked" || key == "redlockd:configuration"
	}
	left := func() []string { return slices.DeleteFunc(s.Keys(), stays) }
	for _, key := range left() {
		reply, err := s.Do("PTTL", key)
		if err != nil {
			t.Fatal(err)
		}
		const gone = -2
		if ms := reply.(int64); ms != gone && (ms < 0 || ms > maxCopyTTL.Milliseconds()) {
			t.Errorf("master %s keeps %q for %d ms, want at most %v", s.Addr(), key, ms, maxCopyTTL)
		}
	}
	for end := time.Now().Add(startTimeout); len(left()) > 0; {
		if time.Now().After(end) {
			t.Fatalf("master %s still keeps %q", s.Addr(), left())
		}
		_ = pause(t.Context(), pollInterval)
	}
	if !slices.ContainsFunc(s.Keys(), isSeal) {
		t.Errorf("master %s has lost its seal", s.Addr())
	}
}
