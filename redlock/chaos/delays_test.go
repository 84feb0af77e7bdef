package chaos

// delays_test.go: locks whose key stays taken when they are over: with DELAY, after a release
// with KEEP, and after an extension that names another delay.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"redlockd/redlock/checker"
)

type delays struct {
	run    *run
	record *checker.Recorder

	mu    sync.Mutex
	taken []stretch
}

// stretch is how long a key stays taken: no other token is granted it that was requested after
// this token was granted it.
type stretch struct {
	key, token  string
	granted, to time.Duration
}

func newDelays(r *run) workload {
	return &delays{run: r, record: checker.NewRecorder(r.record.Now)}
}

func delaysTrade() trade { return trade{"delays", 8, newDelays} }

// delayKeys are few: a key must be wanted while it stays taken.
const delayKeys = 3

func (d *delays) work(ctx context.Context, c *caller) {
	record := d.record.Client()
	for ctx.Err() == nil {
		if c.connect() {
			d.round(ctx, c, record)
		}
		c.rest(ctx, 20*time.Millisecond)
	}
}

func (d *delays) round(ctx context.Context, c *caller, record *checker.ClientRecorder) {
	now := d.record.Now
	draw := func(most time.Duration) time.Duration {
		return (time.Millisecond + time.Duration(c.random.Int64N(int64(most)))).Truncate(time.Millisecond)
	}
	key, ttl := "delay:"+strconv.Itoa(c.random.IntN(delayKeys)), 50*time.Millisecond+draw(maxTTL/4)
	delay := draw(maxTTL - ttl)
	began := now()
	call := record.Begin(checker.Acquire, key, "")
	reply, err := c.ask("DLOCK", key, ttl.Milliseconds(), "DELAY", delay.Milliseconds())
	grant, isGrant := reply.([]any)
	switch {
	case err != nil:
		call.Unknown()
		return
	case !isGrant:
		call.Refused()
		return
	}
	token, until := grant[0].(string), deadline(began, grant[1])
	call.GrantedUntil(token, until, grant[2].(int64))
	one := stretch{key, token, now(), until + promised(delay)}
	c.rest(ctx, ttl/4)
	switch c.random.IntN(4) {
	case 0: // it runs out
		d.note(one)
	case 1:
		delay = draw(maxTTL - ttl)
		sent := now()
		call := record.Begin(checker.Extend, key, token)
		reply, err := c.ask("DEXTEND", key, token, ttl.Milliseconds(), "DELAY", delay.Milliseconds())
		switch {
		case err != nil:
			call.Unknown()
		case reply == nil:
			call.Refused()
		default:
			until := deadline(sent, reply)
			call.GrantedUntil(token, until, 0)
			one.to = until + promised(delay)
			d.note(one)
		}
	case 2:
		keep := draw(maxTTL / 2)
		sent := now()
		if d.unlock(c, record, key, token, "KEEP", keep.Milliseconds()) {
			one.to = min(one.to, sent+promised(keep)) // it makes no lock longer
			d.note(one)
		}
	default:
		d.unlock(c, record, key, token)
	}
}

// promised is how much of a delay there is for certain: clocks may gain 1 %.
func promised(delay time.Duration) time.Duration { return delay - delay/100 - 2*time.Millisecond }

// unlock reports whether the token held the lock until then.
func (d *delays) unlock(c *caller, record *checker.ClientRecorder, key, token string, more ...any) bool {
	call := record.Begin(checker.Release, key, token)
	reply, err := c.ask(append([]any{"DUNLOCK", key, token}, more...)...)
	if err != nil {
		call.Unknown()
		return false
	}
	call.Released(reply == int64(1))
	return reply == int64(1)
}

func (d *delays) note(s stretch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.taken = append(d.taken, s)
}

// probe: every key can be had again.
func (d *delays) probe(c *caller) error {
	for i := range delayKeys {
		if _, err := c.lockAndUnlock("delay:" + strconv.Itoa(i)); err != nil {
			return err
		}
	}
	return nil
}

func (d *delays) verdict() (string, error) {
	h := d.record.History()
	d.mu.Lock()
	defer d.mu.Unlock()
	tally := fmt.Sprintf("%d calls, %d times a key stayed taken", len(h), len(d.taken))
	if !slices.ContainsFunc(h, func(e checker.CallRecord) bool { return e.Op == checker.Acquire && e.Outcome == checker.OK }) {
		return tally, errNothingGiven
	}
	return checked(tally, errors.Join(checker.Check(h), respected(d.taken, h)))
}

// respected returns the first grant within a stretch of another token.
func respected(taken []stretch, h checker.History) error {
	for _, s := range taken {
		for i := range h {
			if e := &h[i]; e.Op == checker.Acquire && e.Outcome == checker.OK && e.Key == s.key && e.Token != s.token && e.Invoke >= s.granted && e.Complete <= s.to {
				return fmt.Errorf("the key stays taken by %q until %v, and was given away: %v", s.token, s.to, e)
			}
		}
	}
	return nil
}

func (d *delays) dump(w io.Writer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.taken {
		if _, err := fmt.Fprintf(w, "%s stays taken by %s from %v to %v\n", s.key, s.token, s.granted, s.to); err != nil {
			return err
		}
	}
	return d.record.History().Dump(w)
}

func TestDelays_AGrantWithinAStretchIsNoticed(t *testing.T) {
	stays := []stretch{{"k", "one", 10, 50}}
	for at, broken := range map[[2]time.Duration]bool{{5, 20}: false, {10, 50}: true, {20, 60}: false, {60, 70}: false} {
		other := checker.CallRecord{Op: checker.Acquire, Key: "k", Token: "two", Invoke: at[0], Complete: at[1], Outcome: checker.OK}
		own, elsewhere := other, other
		own.Token, elsewhere.Key = "one", "l"
		if err := respected(stays, checker.History{own, elsewhere, other}); (err != nil) != broken {
			t.Errorf("a grant in %v: %v", at, err)
		}
	}
}
