package engine

import (
	"errors"
	"testing"
	"time"

	"redlockd/pool"
)

// handClock only moves by hand, and keeps what was to be called.
type handClock struct {
	pool.Clock
	now   time.Duration
	after []time.Duration
}

func (c *handClock) Now() time.Duration { return c.now }

func (c *handClock) AfterFunc(d time.Duration, _ func()) pool.Timer {
	c.after = append(c.after, d)
	return nil
}

func TestRepeat_OnlyForSlowMastersAndForAWhile(t *testing.T) {
	slow, gone := pool.Answer{Sent: true}, pool.Answer{Reply: pool.Reply{Kind: pool.ReplyError, Err: errors.New("connection refused")}}
	const limit = 100 * time.Millisecond
	for _, c := range []struct {
		what    string
		missing []pool.Answer // of the five
		took    time.Duration
		want    bool
	}{
		{"three are slow", []pool.Answer{slow, slow, slow}, limit, true},
		{"all are slow", []pool.Answer{slow, slow, slow, slow, slow}, limit, true},
		{"two are gone", []pool.Answer{slow, slow, slow, gone, gone}, limit, true},
		{"three are gone", []pool.Answer{slow, slow, gone, gone, gone}, 0, false},
		{"a quorum answered", []pool.Answer{slow, slow}, limit, false},
		{"for two timeouts", []pool.Answer{slow, slow, slow}, 2 * limit, false},
	} {
		clock := &handClock{now: time.Hour + c.took}
		p, err := pool.New(pool.Options{Embedded: 5})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		b := &Ballot{Engine: &Engine{Pool: p, Clock: clock, MasterTimeout: limit}}
		b.Tally.N, b.Tally.Quorum = 5, 3
		for lane := range 5 {
			if lane < len(c.missing) {
				b.Missing.MarkMissing(lane, p.Absence(&c.missing[lane]))
			} else {
				b.Missing.MarkCounted(lane)
			}
		}
		since := time.Hour
		if got := b.Repeat(&since, nil); got != c.want || len(clock.after) > 0 != c.want {
			t.Errorf("%s, after %v: repeated %v (%v), want %v", c.what, c.took, got, clock.after, c.want)
		}
		since = 0
		if got := b.Repeat(&since, nil); got != (c.want || c.took == 2*limit) || since != clock.now {
			t.Errorf("%s: the first time, at %v: repeated %v, since %v", c.what, clock.now, got, since)
		}
		if b.moved = true; b.Repeat(new(time.Duration), nil) {
			t.Errorf("%s: repeated though the key has left the group", c.what)
		}
	}
}
