// Package fleet is a mixed fleet on one key: redis-py's Lock over a daemon, redsync
// directly on the masters, and DLOCK through two daemons, while masters are killed,
// stopped and restarted. The checker reads the answers of all clients as one history.
//
// FLEET_PYTHON is a Python with redis-py; without it the runs are skipped.
// FLEET_SEED repeats the draws, FLEET_SECONDS is the time of load, 15 by default.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"redlockd/pool/faulty"
	"redlockd/redlock/checker"
)

const (
	key     = "fleet"
	riders  = 4 // of redis-py
	others  = 3 // of redsync, and of DLOCK
	longest = 2 * time.Second
)

func TestFleet_NeverHasTwoHoldersWhileMastersDieAndComeBack(t *testing.T) {
	f := start(t, true)
	h := f.ride(span(t), func(m *faulty.Server, random *rand.Rand) {
		switch pause := time.Duration(random.Int64N(int64(time.Second))); random.IntN(3) {
		case 0:
			m.Kill()
			f.wait(pause)
			m.Restart()
		case 1:
			m.Stop()
			f.wait(pause)
			m.Cont()
		default:
			m.Restart()
		}
	})
	if err := checker.Check(h); err != nil {
		t.Error(err)
	}
	f.tally(h)
}

// The checker detects violations: if masters lose their memory, a client that uses them
// directly gets a lock that another client holds.
func TestFleet_IsCaughtWhereMastersForget(t *testing.T) {
	f := start(t, false)
	var found *checker.Violation
	for range 10 {
		h := f.ride(2*time.Second, func(*faulty.Server, *rand.Rand) {
			for _, m := range f.masters {
				m.FlushAll()
			}
		})
		if errors.As(checker.CheckExclusion(h), &found) {
			return
		}
	}
	t.Error("masters that forget everything again and again were never caught")
}

// span is the time of load.
func span(t *testing.T) time.Duration {
	text := os.Getenv("FLEET_SECONDS")
	if text == "" {
		return 15 * time.Second
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 3600 {
		t.Fatalf("FLEET_SECONDS: %q, allowed are 1 to 3600", text)
	}
	return time.Duration(n) * time.Second
}

// fleet has the masters, the daemons and all clients of the key.
type fleet struct {
	t       *testing.T
	seed    uint64
	python  string
	masters []*faulty.Server
	daemons []*faulty.Program
	record  *checker.Recorder
	stop    context.Context // ends with the load
}

// ride lets all clients contend for the key for a while, and stops or kills a master now and
// then.
func (f *fleet) ride(span time.Duration, strike func(*faulty.Server, *rand.Rand)) checker.History {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), span)
	defer cancel()
	f.stop = ctx
	f.record = checker.NewRecorder(now)
	var all sync.WaitGroup
	var ridden checker.History
	all.Go(func() { ridden = f.ridePython(span) })
	for i := range others {
		all.Go(func() { f.askDaemons(i) })
		all.Go(func() { f.askMasters(i) })
	}
	random := rand.New(rand.NewPCG(f.seed, 0))
	for f.wait(time.Duration(random.Int64N(int64(400 * time.Millisecond)))) {
		strike(f.masters[random.IntN(len(f.masters))], random)
	}
	all.Wait()
	return append(f.record.History(), ridden...)
}

// wait reports whether the load continues.
func (f *fleet) wait(d time.Duration) bool {
	select {
	case <-time.After(d):
		return f.stop.Err() == nil
	case <-f.stop.Done():
		return false
	}
}

// lull is the pause of a client between two calls.
func (f *fleet) lull(most time.Duration) { f.wait(rand.N(most)) }

// tally checks that every kind of client got the lock, or the run proves nothing.
func (f *fleet) tally(h checker.History) {
	f.t.Helper()
	count := map[string]int{}
	for i := range h {
		if h[i].Op != checker.Acquire || h[i].Outcome != checker.OK {
			continue
		}
		switch {
		case h[i].Fence > 0:
			count["DLOCK"]++
		case h[i].Client >= firstRider:
			count["redis-py"]++
		default:
			count["redsync"]++
		}
	}
	f.t.Logf("%d calls, grants: %v", len(h), count)
	for _, who := range []string{"DLOCK", "redis-py", "redsync"} {
		if count[who] < 3 {
			f.t.Errorf("%s was given the lock %d times: the others had it all the time", who, count[who])
		}
	}
}

func token(who string, user, serial int) string { return fmt.Sprintf("%s-%d-%d", who, user, serial) }
