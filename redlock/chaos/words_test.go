package chaos

// words_test.go: clients of one Redis that leave nothing behind, and clients that
// all write the same value.

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"redlockd/redlock/judge"
)

// words are SET NX and scripts of clients that give back until that is answered. Their leases
// are long, so what is left of them was left by the daemons.
type words struct {
	run    *run
	values atomic.Int64
}

func tidyWordsTrade() trade {
	return trade{"tidy words", 12, func(r *run) workload { return &words{run: r} }}
}

func (w *words) work(ctx context.Context, c *caller) {
	record := w.run.record.Client()
	for ctx.Err() == nil {
		if c.connect() {
			w.round(ctx, c, record)
		}
		c.rest(ctx, 10*time.Millisecond)
	}
}

func (w *words) round(ctx context.Context, c *caller, record *judge.Client) {
	key := fmt.Sprint("words:", c.random.IntN(3))
	value, ttl := fmt.Sprintf("%s%d-of-%d", dropInPrefix, w.values.Add(1), c.number), c.stand.maxLease()
	words := []any{"SET", key, value, "NX", "PX", ttl.Milliseconds()}
	if c.random.IntN(2) == 0 {
		words = []any{"EVAL", takeScript, 1, key, value, ttl.Milliseconds()}
	}
	began := w.run.record.Now()
	call := record.Begin(judge.Acquire, key, value)
	reply, err := c.ask(words...)
	switch {
	case err != nil:
		call.Unknown()
	case reply != "OK" && reply != int64(1):
		call.Refused()
		return
	default:
		call.GrantedUntil(value, began+counted(ttl), 0)
	}
	c.rest(ctx, 5*time.Millisecond)
	eventually(func() bool {
		call := record.Begin(judge.Release, key, value)
		reply, err := c.ask("EVAL", compareAndDelete, 1, key, value)
		if err != nil {
			call.Unknown()
			return false
		}
		call.Released(reply == int64(1))
		return true
	})
}

func (w *words) probe(*caller) error { return nil }

func (w *words) verdict() (string, error) {
	h := w.run.record.History()
	return checked(fmt.Sprintf("%d calls", len(h)), judge.Check(h))
}

func (w *words) dump(in io.Writer) error { return w.run.record.History().Dump(in) }

// alike write one value, and never release: nobody could say whose it was.
type alike struct {
	run  *run
	made atomic.Int64
}

func alikeTrade() trade {
	return trade{"alike", 12, func(r *run) workload { return &alike{run: r} }}
}

func (a *alike) work(ctx context.Context, c *caller) {
	record := a.run.record.Client()
	for ctx.Err() == nil {
		if c.connect() {
			a.round(ctx, c, record)
		}
		c.rest(ctx, 10*time.Millisecond)
	}
}

func (a *alike) round(ctx context.Context, c *caller, record *judge.Client) {
	const value = "locked"
	const ttl = 150 * time.Millisecond
	key, name := fmt.Sprint("alike:", c.random.IntN(3)), fmt.Sprint("alike-", a.made.Add(1))
	began := a.run.record.Now()
	call := record.Begin(judge.Acquire, key, name)
	reply, err := c.ask("SET", key, value, "NX", "PX", ttl.Milliseconds())
	switch {
	case err != nil:
		call.Unknown()
	case reply != "OK":
		call.Refused()
	default:
		call.GrantedUntil(name, began+counted(ttl), 0)
	}
}

func (a *alike) probe(*caller) error { return nil }

func (a *alike) verdict() (string, error) {
	h := a.run.record.History()
	return checked(fmt.Sprintf("%d calls", len(h)), judge.CheckExclusion(h))
}

func (a *alike) dump(in io.Writer) error { return a.run.record.History().Dump(in) }
