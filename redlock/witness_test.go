package redlock

// witness_test.go: clients that record what they saw, for the checker. Some come through
// a daemon, some contact the masters themselves, as every other Redlock client does.

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/redlock/checker"
	"redlockd/redlock/quorum"
)

// witness is a client of a daemon.
type witness struct {
	*daemon
	record *checker.Recorder
	book   *checker.ClientRecorder
}

func (d *daemon) witness(r *checker.Recorder) *witness { return &witness{d, r, r.Client()} }

// relies is the deadline of a grant on the recorder's clock. The recorder's is
// read first: what passes in between shortens the lease.
func (w *witness) relies(g *Grant) time.Duration {
	now := w.record.Now()
	return now + g.Validity()
}

func (w *witness) acquire(key Key, ttl time.Duration) (Grant, bool) {
	return w.acquireAs(LockRequest{Key: key, TTL: ttl})
}

// acquireAs writes down every key of the request as a call of its own.
func (w *witness) acquireAs(r LockRequest) (Grant, bool) {
	var calls []checker.PendingCall
	for _, key := range append([]Key{r.Key}, r.More...) {
		call := w.book.Begin(checker.Acquire, string(key), string(r.Token))
		switch r.Kind() {
		case Shared:
			call = call.AsReader()
		case Permits:
			call = call.OfPermits(LimitOf(r.Mode))
		}
		calls = append(calls, call)
	}
	answer := make(chan bool, 1)
	var grant Grant
	w.Lock(nil, r, func(g Grant, err error) {
		for _, call := range calls {
			w.acquired(call, &g, err)
		}
		grant = g
		answer <- err == nil
	})
	return grant, <-answer
}

func (w *witness) acquired(call checker.PendingCall, g *Grant, err error) {
	switch {
	case err == nil:
		call.GrantedUntil(string(g.Token), w.relies(g), int64(g.Fence))
	case errors.Is(err, ErrHeld):
		call.Refused()
	default:
		call.Unknown()
	}
}

func (w *witness) prolong(key Key, token Token, ttl time.Duration) {
	call := w.book.Begin(checker.Extend, string(key), string(token))
	answered := make(chan struct{})
	w.Extend(nil, ExtendRequest{Key: key, Token: token, TTL: ttl}, func(g Grant, err error) {
		switch {
		case err == nil:
			call.GrantedUntil(string(token), w.relies(&g), 0)
		case errors.Is(err, ErrNotHeld):
			call.Refused()
		default:
			call.Unknown()
		}
		close(answered)
	})
	<-answered
}

func (w *witness) release(key Key, token Token) {
	call := w.book.Begin(checker.Release, string(key), string(token))
	answered := make(chan struct{})
	w.Unlock(nil, UnlockRequest{Key: key, Token: token}, func(was bool, err error) {
		if err != nil {
			call.Unknown()
		} else {
			call.Released(was)
		}
		close(answered)
	})
	<-answered
}

// foreigner contacts all masters at once: SET NX PX, and a compare and delete.
type foreigner struct {
	record *checker.Recorder
	book   *checker.ClientRecorder
	links  []pool.Link
}

const compareAndDelete = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`

func (c *cluster) foreigner(r *checker.Recorder) *foreigner {
	c.t.Helper()
	f := &foreigner{record: r, book: r.Client()}
	dial := pool.DialRueidis(patience)
	for _, m := range c.options().Masters {
		link, err := dial(c.t.Context(), m, 0)
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(link.Close)
		f.links = append(f.links, link)
	}
	return f
}

// everywhere counts the masters that answer as the command does when it succeeds.
func (f *foreigner) everywhere(args ...string) int {
	var yes atomic.Int64
	var all sync.WaitGroup
	for _, link := range f.links {
		all.Go(func() {
			for _, r := range link.Exchange([]pool.Command{{Args: args}}, nil) {
				if r.Kind == pool.ReplyString || r.Kind == pool.ReplyInt && r.Int == 1 {
					yes.Add(1)
				}
			}
		})
	}
	all.Wait()
	return int(yes.Load())
}

func (f *foreigner) acquire(key, token string, ttl time.Duration) bool {
	call := f.book.Begin(checker.Acquire, key, token)
	deadline := f.record.Now() + ttl - quorum.Drift(ttl)
	yes := f.everywhere("SET", key, token, "NX", "PX", strconv.FormatInt(ttl.Milliseconds(), 10))
	switch {
	case yes < pool.Quorum(len(f.links)):
		call.Refused()
	case f.record.Now() >= deadline:
		call.Unknown()
	default:
		call.GrantedUntil(token, deadline, 0)
		return true
	}
	f.everywhere("EVAL", compareAndDelete, "1", key, token)
	return false
}

func (f *foreigner) release(key, token string) {
	call := f.book.Begin(checker.Release, key, token)
	if f.everywhere("EVAL", compareAndDelete, "1", key, token) >= pool.Quorum(len(f.links)) {
		call.Released(true)
	} else {
		call.Unknown()
	}
}

// lull is a random time: clients that retry in step would split every vote.
func lull(most time.Duration) { time.Sleep(rand.N(most)) }

// checked reports the checker's findings on everything that was recorded.
func checked(t *testing.T, r *checker.Recorder) checker.History {
	t.Helper()
	h := r.History()
	began := time.Now()
	if err := checker.Check(h); err != nil {
		t.Error(err)
	}
	t.Logf("%d calls checked in %v", len(h), time.Since(began).Round(time.Millisecond))
	return h
}
