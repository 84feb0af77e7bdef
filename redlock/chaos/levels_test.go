package chaos

// levels_test.go: owners of reentrant locks, who take a lock up to three times, through one
// daemon or several, and release each level, beside clients without levels.

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"redlockd/redlock/checker"
)

// levels has an owner for each round. For the checker all levels are one token, the owner: it
// holds the key as long as one of them.
type levels struct {
	run    *run
	record *checker.Recorder
	rounds atomic.Int64
}

func newLevels(r *run) workload {
	return &levels{run: r, record: checker.NewRecorder(r.record.Now)}
}

func levelsTrade() trade { return trade{"levels", 8, newLevels} }

const levelKeys = 3

func (l *levels) work(ctx context.Context, c *caller) {
	record := l.record.Client()
	for ctx.Err() == nil {
		if c.connect() {
			l.round(ctx, c, record)
		}
		c.rest(ctx, 20*time.Millisecond)
	}
}

func (l *levels) round(ctx context.Context, c *caller, record *checker.ClientRecorder) {
	key, owner := "level:"+strconv.Itoa(c.random.IntN(levelKeys)), fmt.Sprintf("owner-%d-of-%d", l.rounds.Add(1), c.number)
	ttl := 60*time.Millisecond + time.Duration(c.random.Int64N(int64(maxTTL/2))).Truncate(time.Millisecond)
	words := []any{"TOKEN", owner, "REENTRANT"}
	if c.random.IntN(4) == 0 {
		words = words[:2]
	}
	var held []string
	var first time.Duration // end of the level that ends first
	for range 1 + c.random.IntN(3) {
		began := l.record.Now()
		call := record.Begin(checker.Acquire, key, owner)
		reply, err := c.ask(append([]any{"DLOCK", key, ttl.Milliseconds()}, words...)...)
		grant, isGrant := reply.([]any)
		switch {
		case err != nil:
			call.Unknown()
		case !isGrant:
			call.Refused()
		default:
			until := deadline(began, grant[1])
			call.GrantedUntil(owner, until, grant[2].(int64))
			if held = append(held, grant[0].(string)); len(held) == 1 || until < first {
				first = until
			}
		}
		if len(words) == 2 || len(held) == 0 {
			break
		}
		c.rest(ctx, 10*time.Millisecond)
		if c.random.IntN(4) == 0 {
			c.leave() // the next level through any daemon
		}
	}
	if len(held) == 0 {
		return
	}
	newest := held[len(held)-1]
	if c.random.IntN(4) == 0 {
		began := l.record.Now()
		call := record.Begin(checker.Extend, key, owner)
		reply, err := c.ask("DEXTEND", key, newest, ttl.Milliseconds())
		switch {
		case err != nil, reply == nil: // another level may hold the key
			call.Unknown()
		default:
			call.GrantedUntil(owner, deadline(began, reply), 0)
		}
	}
	if c.random.IntN(10) == 0 {
		return // dies
	}
	// The newest level ends last, and what is promised to the owner with it. Of two levels that
	// end together, REENTRANT releases either.
	anonymous := words[len(words)-1] == "REENTRANT" && c.random.IntN(2) == 0
	release := func(token string) (any, error) {
		if anonymous {
			return c.ask("DUNLOCK", key, owner, "REENTRANT")
		}
		return c.ask("DUNLOCK", key, token)
	}
	for _, token := range held[:len(held)-1] {
		_, _ = release(token)
		c.rest(ctx, 5*time.Millisecond)
	}
	call := record.Begin(checker.Release, key, owner)
	reply, err := release(newest)
	left, released := reply.(int64)
	switch {
	case err != nil, anonymous && left > 0, // a level whose answer was lost is left
		anonymous && len(held) > 1 && l.record.Now() >= first: // one was over, and another release took the newest
		call.Unknown()
	case anonymous:
		call.Released(released)
	default:
		call.Released(left == 1)
	}
}

// probe: every key can be had again.
func (l *levels) probe(c *caller) error {
	for i := range levelKeys {
		if _, err := c.lockAndUnlock("level:" + strconv.Itoa(i)); err != nil {
			return err
		}
	}
	return nil
}

func (l *levels) verdict() (string, error) {
	h := l.record.History()
	granted, again := map[string]int{}, 0
	for i := range h {
		if e := &h[i]; e.Op == checker.Acquire && e.Outcome == checker.OK {
			if granted[e.Token]++; granted[e.Token] == 2 {
				again++
			}
		}
	}
	tally := fmt.Sprintf("%d calls: %d owners, %d of them with several levels", len(h), len(granted), again)
	if len(granted) == 0 {
		return tally, errNothingGiven
	}
	return checked(tally, checker.Check(h))
}

func (l *levels) dump(w io.Writer) error { return l.record.History().Dump(w) }
