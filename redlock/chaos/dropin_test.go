package chaos

// dropin_test.go: clients that use a daemon as one Redis, with SET NX and the
// scripts of lock libraries, on the keys that the clients of DLOCK use.

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"redlockd/redlock/checker"
)

const (
	takeScript    = `return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0`
	renewScript   = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`
	addScript     = `if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end local left = redis.call('pttl', KEYS[1]) if left <= 0 then return 0 end redis.call('pexpire', KEYS[1], left + ARGV[2]) return 1`
	dropInPrefix  = "value-"
	dropInClients = 6
)

type dropIn struct {
	run    *run
	values atomic.Int64
	complaints
}

func newDropIn(r *run) workload { return &dropIn{run: r} }

func dropInTrade() trade { return trade{"drop-in", dropInClients, newDropIn} }

func (d *dropIn) work(ctx context.Context, c *caller) {
	record := d.run.record.Client()
	for ctx.Err() == nil {
		if c.connect() {
			d.round(ctx, c, record)
		}
		c.rest(ctx, 20*time.Millisecond)
	}
}

func (d *dropIn) round(ctx context.Context, c *caller, record *checker.ClientRecorder) {
	if c.random.IntN(6) == 0 {
		d.cutShort(ctx, c)
		return
	}
	key := "hot:" + strconv.Itoa(c.random.IntN(hotKeys))
	value := fmt.Sprintf("%s%d-of-%d", dropInPrefix, d.values.Add(1), c.number)
	ttl := 100*time.Millisecond + time.Duration(c.random.Int64N(int64(maxTTL-100*time.Millisecond))).Truncate(time.Millisecond)
	words := []any{"SET", key, value, "NX", "PX", ttl.Milliseconds()}
	switch c.random.IntN(4) {
	case 0, 1:
		words = []any{"EVAL", takeScript, 1, key, value, ttl.Milliseconds()}
	case 2:
		words = []any{"MSETEX", 1, key, value, "NX", "PX", ttl.Milliseconds()}
	}
	began := d.run.record.Now()
	call := record.Begin(checker.Acquire, key, value)
	reply, err := c.ask(words...)
	switch {
	case err != nil:
		call.Unknown()
		if c.random.IntN(2) == 0 { // a client with an unknown answer tries to keep the lock
			d.renew(c, record, key, value, ttl)
		}
		return
	case reply != "OK" && reply != int64(1):
		call.Refused()
		if c.random.IntN(4) == 0 { // of no use, which the reply must show
			d.release(c, record, key, value)
		}
		return
	}
	until := began + counted(ttl)
	call.GrantedUntil(value, until, 0)
	c.rest(ctx, 10*time.Millisecond)
	d.look(c, key, value, until)
	if c.random.IntN(2) == 0 {
		d.retake(c, record, key, value, ttl)
		d.look(c, key, value, until) // also if its outcome is unknown
	}
	if c.random.IntN(10) == 0 {
		c.rest(ctx, 2*ttl) // and comes too late, maybe
	}
	if c.random.IntN(3) == 0 {
		d.renew(c, record, key, value, ttl)
		c.rest(ctx, 10*time.Millisecond)
	}
	if c.random.IntN(6) == 0 {
		value = d.handOver(c, record, key, value, ttl)
	}
	if c.random.IntN(10) == 0 {
		c.leave() // the rest through any daemon
	}
	if c.random.IntN(20) > 0 {
		d.release(c, record, key, value)
	}
}

// counted is what a careful library relies on of a lease, from its request on.
func counted(ttl time.Duration) time.Duration { return ttl - ttl/100 - 2*time.Millisecond }

func (d *dropIn) renew(c *caller, record *checker.ClientRecorder, key, value string, ttl time.Duration) {
	began := d.run.record.Now()
	call := record.Begin(checker.Extend, key, value)
	script := renewScript
	if c.random.IntN(4) == 0 {
		script, ttl = addScript, 20*time.Millisecond
	}
	reply, err := c.ask("EVAL", script, 1, key, value, ttl.Milliseconds())
	extended(call, reply, err, value, began+counted(ttl))
}

// handOver has another value take the place of the one that holds the lock, and returns it.
func (d *dropIn) handOver(c *caller, record *checker.ClientRecorder, key, value string, ttl time.Duration) (next string) {
	next = fmt.Sprintf("%s%d-of-%d", dropInPrefix, d.values.Add(1), c.number)
	began := d.run.record.Now()
	gives, takes := record.Begin(checker.Release, key, value), record.Begin(checker.Acquire, key, next)
	reply, err := c.ask("SET", key, next, "IFEQ", value, "PX", ttl.Milliseconds())
	switch {
	case err != nil:
		gives.Unknown()
		takes.Unknown()
	case reply != "OK":
		gives.Released(false)
		takes.Refused()
	default:
		gives.Released(true)
		takes.GrantedUntil(next, began+counted(ttl), 0)
	}
	return next
}

func (d *dropIn) release(c *caller, record *checker.ClientRecorder, key, value string) {
	words := []any{"EVAL", compareAndDelete, 1, key, value}
	switch c.random.IntN(5) {
	case 0:
		words = []any{"DELEX", key, "IFEQ", value}
	case 1:
		words = []any{"DELIFEQ", key, value}
	case 2:
		d.transact(c, record, key, value)
		return
	}
	call := record.Begin(checker.Release, key, value)
	reply, err := c.ask(words...)
	if err != nil {
		call.Unknown()
		return
	}
	call.Released(reply == int64(1))
}

// transact reads the lock and deletes it, unless it changes in between.
func (d *dropIn) transact(c *caller, record *checker.ClientRecorder, key, value string) {
	call := record.Begin(checker.Release, key, value)
	for _, step := range [][]any{{"WATCH", key}, {"GET", key}, {"MULTI"}, {"DEL", key}} {
		reply, err := c.ask(step...)
		switch {
		case err != nil:
			c.leave()
			call.Unknown()
			return
		case step[0] == "GET" && reply != value: // what is deleted would be another's
			c.leave()
			call.Released(false)
			return
		}
	}
	reply, err := c.ask("EXEC")
	if err != nil {
		call.Unknown()
		return
	}
	done, _ := reply.([]any)
	call.Released(len(done) == 1 && done[0] == int64(1))
}

// probe: every key can be had again.
func (d *dropIn) probe(c *caller) error {
	for i := range hotKeys {
		key, value := "hot:"+strconv.Itoa(i), fmt.Sprintf("probe-%d", d.values.Add(1))
		reply, err := insist(func() (any, error) { return c.ask("SET", key, value, "NX", "PX", 500) })
		if reply != "OK" {
			return fmt.Errorf("SET %s NX: %v, %v", key, reply, err)
		}
		if seen, err := c.ask("GET", key); seen != value {
			return fmt.Errorf("GET %s: %v, %v; want %s", key, seen, err, value)
		}
		if reply, err := c.ask("EVAL", compareAndDelete, 1, key, value); reply != int64(1) {
			return fmt.Errorf("compare and delete of %s: %v, %v; want 1", key, reply, err)
		}
	}
	return nil
}

// verdict: their replies are in the history by which the locks are checked.
func (d *dropIn) verdict() (string, error) {
	count := map[checker.OpKind]int{}
	h := d.run.record.History()
	for i := range h {
		if h[i].Outcome == checker.OK && strings.HasPrefix(h[i].Token, dropInPrefix) {
			count[h[i].Op]++
		}
	}
	tally := fmt.Sprintf("%d grants by SET NX and scripts, %d extensions, %d releases answered", count[checker.Acquire], count[checker.Extend], count[checker.Release])
	if count[checker.Acquire] == 0 {
		return tally, errNothingGiven
	}
	return tally, d.complaints.all()
}

func (d *dropIn) dump(io.Writer) error { return nil }
