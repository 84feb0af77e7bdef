package redlock

// turns_test.go: no client is passed for ever, on real masters. What is counted is grants, not time.

import (
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// keepers always wait for a key in a daemon, and hold it until goOn; they end with the test.
type keepers struct {
	grants atomic.Int64
	over   atomic.Bool
	all    sync.WaitGroup
}

func (d *daemon) keeps(key Key, n int, goOn func()) *keepers {
	k := &keepers{}
	for range n {
		k.all.Add(1)
		go func() {
			defer k.all.Done()
			for !k.over.Load() {
				out := make(chan Grant, 1) // its one answer
				d.Wait(nil, LockRequest{Key: key, TTL: long, Wait: long}, func(g Grant, err error) {
					if err != nil {
						d.t.Error(err)
						k.over.Store(true)
					}
					out <- g
				})
				g := <-out
				if g.Token == "" {
					return
				}
				k.grants.Add(1)
				goOn()
				done := make(chan struct{})
				d.Unlock(nil, UnlockRequest{Key: key, Token: g.Token}, func(bool, error) { close(done) })
				<-done
			}
		}()
	}
	eventually(d.t, "they hand the lock over", func() bool { return k.grants.Load() > 5 })
	return k
}

func (k *keepers) end() {
	k.over.Store(true)
	k.all.Wait()
}

// refusedSince returns a function that waits until the daemon has been refused n times from then on, or
// until over.
func (d *daemon) refusedSince(n int64, over *atomic.Bool) func() {
	return func() {
		before := d.Counters().Refused
		eventually(d.t, "the other client was refused", func() bool { return over.Load() || d.Counters().Refused >= before+n })
	}
}

func TestTurns_AWaiterOfAnotherDaemonIsPassedALimitedNumberOfTimes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	var over atomic.Bool
	over.Store(true)
	k := one.keeps("k", 3, func() { two.refusedSince(1, &over)() })
	defer k.end()
	for _, fair := range []bool{false, true} {
		out := make(chan waited, 1)
		over.Store(false)
		before, most := k.grants.Load(), int64(32)
		if fair {
			most = 3 // two, and the one that is released when it is established
		}
		request := LockRequest{Key: "k", TTL: long, Wait: long, Fair: fair}
		two.Wait(nil, request, func(g Grant, err error) {
			over.Store(true)
			out <- waited{"other", g, err}
		})
		g := got(t, out)
		if n := k.grants.Load() - before; n > most {
			t.Errorf("fair %v: passed by %d grants, at most %d are allowed", fair, n, most)
		}
		two.free("k", g.Token)
	}
}

func TestTurns_AClientThatPollsIsPassedALimitedNumberOfTimes(t *testing.T) {
	t.Parallel()
	for _, same := range []bool{true, false} {
		c := newCluster(t, 3, long)
		one := c.daemon()
		other := one
		if !same {
			other = c.daemon()
		}
		var over atomic.Bool
		over.Store(true)
		k := one.keeps("k", 3, func() { other.refusedSince(20, &over)() })
		over.Store(false)
		before := k.grants.Load()
		for try := 0; ; try++ {
			answer := make(chan error, 1)
			value := Token("value-" + strconv.Itoa(try))
			other.Lock(nil, LockRequest{Key: "k", TTL: long, Token: value, Mode: Valued, Requester: &Requester{ID: 1}}, func(_ Grant, err error) { answer <- err })
			err := <-answer
			if err == nil {
				over.Store(true)
				if n := k.grants.Load() - before; n > 100 {
					t.Errorf("same daemon %v: passed by %d grants", same, n)
				}
				other.free("k", value)
				break
			}
			if !errors.Is(err, ErrHeld) {
				t.Fatal(err)
			}
		}
		k.end()
		c.noQueues("k")
	}
}
