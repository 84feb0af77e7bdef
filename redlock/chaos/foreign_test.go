package chaos

// foreign_test.go: clients of a plain Redlock library, which talk to the masters
// themselves and want the keys that the daemons' clients want. They have no rule
// for masters that forget and none for clocks that step, so they are in no run
// where masters do; what holds then holds for them, too.

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"redlockd/pool/faulty"
	"redlockd/redlock/judge"
)

const foreignTimeout = 50 * time.Millisecond // for one master

type foreign struct {
	run    *run
	tokens atomic.Int64
}

func newForeign(r *run) workload { return &foreign{run: r} }

func (f *foreign) work(ctx context.Context, c *caller) {
	record := f.run.record.Client()
	for ctx.Err() == nil {
		f.round(ctx, c, record)
		c.rest(ctx, 30*time.Millisecond)
	}
}

func (f *foreign) round(ctx context.Context, c *caller, record *judge.Client) {
	key := "hot:" + strconv.Itoa(c.random.IntN(hotKeys))
	ttl := 200*time.Millisecond + time.Duration(c.random.Int64N(int64(maxTTL-200*time.Millisecond))).Truncate(time.Millisecond)
	token := fmt.Sprintf("foreign-%d", f.tokens.Add(1))
	began := f.run.record.Now()
	call := record.Begin(judge.Acquire, key, token)
	yes := f.all(func(c *faulty.Conn) bool {
		reply, err := c.Do("SET", key, token, "NX", "PX", ttl.Milliseconds())
		return err == nil && reply == "OK"
	})
	until := began + ttl - ttl/100 - 2*time.Millisecond // the drift that Redlock subtracts
	if yes <= len(f.run.stand.masters)/2 || f.run.record.Now() >= until {
		f.release(key, token)
		call.Refused()
		return
	}
	call.GrantedUntil(token, until, 0)
	c.rest(ctx, 30*time.Millisecond)
	call = record.Begin(judge.Release, key, token)
	f.release(key, token)
	call.Unknown() // what a release achieved is nothing that these libraries say reliably
}

const compareAndDelete = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`

func (f *foreign) release(key, token string) {
	f.all(func(c *faulty.Conn) bool {
		_, err := c.Do("EVAL", compareAndDelete, 1, key, token)
		return err == nil
	})
}

// all asks every master at once and counts who said yes.
func (f *foreign) all(ask func(*faulty.Conn) bool) int {
	var yes atomic.Int64
	var masters sync.WaitGroup
	for _, m := range f.run.stand.masters {
		masters.Go(func() {
			c, err := faulty.Dial(m.Addr(), foreignTimeout)
			if err != nil {
				return
			}
			defer c.Close()
			if ask(c) {
				yes.Add(1)
			}
		})
	}
	masters.Wait()
	return int(yes.Load())
}

// probe: what a client of the daemons can have, these can.
func (f *foreign) probe(*caller) error { return nil }

// verdict: their leases are in the history that the locks are judged by.
func (f *foreign) verdict() (string, error) {
	grants := 0
	h := f.run.record.History()
	for i := range h {
		if h[i].Op == judge.Acquire && h[i].Outcome == judge.OK && h[i].Fence == 0 {
			grants++
		}
	}
	return fmt.Sprintf("%d grants without a daemon", grants), nil
}

func (f *foreign) dump(io.Writer) error { return nil }
