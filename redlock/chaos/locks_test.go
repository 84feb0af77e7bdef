package chaos

// locks_test.go: clients that compete for the same few keys, each for itself, and use
// every freedom that the contract gives them: they repeat what was not answered,
// hand the token to another daemon, come late, forget to release, and go away.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"redlockd/redlock/checker"
)

const hotKeys = 5

type locks struct {
	record *checker.Recorder
	tokens atomic.Int64
}

// newLocks shares its keys and their history with the drop-in clients and the foreign ones.
func newLocks(r *run) workload { return &locks{record: r.record} }

// newSoleLocks has a history of its own.
func newSoleLocks(r *run) workload { return &locks{record: checker.NewRecorder(r.record.Now)} }

// wish is what a client does with a key in one round.
type wish struct {
	key     string
	ttl     time.Duration
	token   string // "" lets the daemon choose
	hold    time.Duration
	extends bool
	repeats bool // its DLOCK, while it holds
	wanders bool // to another daemon, before it is done
	lapses  bool // never releases
	vanish  bool // goes without reading the answer
}

func (l *locks) draw(c *caller) wish {
	often := func(n int) bool { return c.random.IntN(n) == 0 }
	w := wish{
		key: "hot:" + strconv.Itoa(c.random.IntN(hotKeys)),
		ttl: 50*time.Millisecond + time.Duration(c.random.Int64N(int64(maxTTL-50*time.Millisecond))).Truncate(time.Millisecond),
	}
	longest := 15 * time.Millisecond // most are quick, so that the locks change hands often
	if often(8) {
		longest = 3 * w.ttl / 2 // some are given back when they are about to end, or have ended
	}
	w.hold = time.Duration(c.random.Int64N(int64(longest)))
	w.extends, w.repeats, w.wanders, w.lapses, w.vanish = often(4), often(6), often(10), often(20), often(40)
	if often(3) || w.repeats || w.vanish {
		w.token = fmt.Sprintf("token-%d-of-%d", l.tokens.Add(1), c.number)
	}
	return w
}

func (l *locks) work(ctx context.Context, c *caller) {
	record := l.record.Client()
	for ctx.Err() == nil {
		if c.connect() {
			l.round(ctx, c, record)
		}
		c.rest(ctx, 15*time.Millisecond)
	}
}

func (l *locks) round(ctx context.Context, c *caller, record *checker.ClientRecorder) {
	w := l.draw(c)
	if w.vanish {
		call := record.Begin(checker.Acquire, w.key, w.token)
		_ = c.conn.Send("DLOCK", w.key, w.ttl.Milliseconds(), "TOKEN", w.token) // not known either way
		c.rest(ctx, 3*time.Millisecond)
		c.leave()
		call.Unknown()
		return
	}
	token, held := l.lock(c, record, w)
	if !held {
		return
	}
	c.rest(ctx, w.hold)
	if w.extends {
		l.extend(c, record, w, token)
		c.rest(ctx, w.hold)
	}
	if w.repeats {
		l.lock(c, record, w)
		c.rest(ctx, w.hold)
	}
	if w.wanders {
		c.leave()
	}
	if !w.lapses && !l.unlock(c, record, w, token) {
		l.unlock(c, record, w, token) // the answer to the first one was not known
	}
}

// lock sends a request, and repeats it with the same token if the answer was unknown and
// the lease of the first try may still run: the documented use of a token.
func (l *locks) lock(c *caller, record *checker.ClientRecorder, w wish) (token string, held bool) {
	token, held, known := l.lockOnce(c, record, w)
	if !known && w.token != "" {
		token, held, _ = l.lockOnce(c, record, w)
	}
	return token, held
}

func (l *locks) lockOnce(c *caller, record *checker.ClientRecorder, w wish) (token string, held, known bool) {
	words := []any{"DLOCK", w.key, w.ttl.Milliseconds()}
	if w.token != "" {
		words = append(words, "TOKEN", w.token)
	}
	began := l.record.Now()
	call := record.Begin(checker.Acquire, w.key, w.token)
	reply, err := c.ask(words...)
	if err != nil {
		call.Unknown()
		return "", false, false
	}
	grant, isGrant := reply.([]any)
	if !isGrant {
		call.Refused()
		return "", false, true
	}
	token = grant[0].(string)
	call.GrantedUntil(token, deadline(began, grant[1]), grant[2].(int64))
	return token, true, true
}

// deadline is the validity from the receipt of the reply less one round trip,
// which is the validity from when the command left. A client that waited confirms the
// lock and counts from there; counted from the command that waited it ends earlier.
func deadline(began time.Duration, validity any) time.Duration {
	return began + time.Duration(validity.(int64))*time.Millisecond
}

func (l *locks) extend(c *caller, record *checker.ClientRecorder, w wish, token string) {
	began := l.record.Now()
	ttl := w.ttl
	if c.random.IntN(3) == 0 {
		ttl = ttl/4 + time.Millisecond // which shortens nothing
	}
	call := record.Begin(checker.Extend, w.key, token)
	reply, err := c.ask("DEXTEND", w.key, token, ttl.Milliseconds())
	switch {
	case err != nil:
		call.Unknown()
	case reply == nil:
		call.Refused()
	default:
		call.GrantedUntil(token, deadline(began, reply), 0)
	}
}

// unlock reports whether the answer is known.
func (l *locks) unlock(c *caller, record *checker.ClientRecorder, w wish, token string) bool {
	call := record.Begin(checker.Release, w.key, token)
	reply, err := c.ask("DUNLOCK", w.key, token)
	if err != nil {
		call.Unknown()
		return false
	}
	call.Released(reply == int64(1))
	return true
}

// probe: every key can be had again, at the latest when what was left on it has
// expired.
func (l *locks) probe(c *caller) error {
	for i := range hotKeys {
		if _, err := c.lockAndUnlock("hot:" + strconv.Itoa(i)); err != nil {
			return err
		}
	}
	return nil
}

// insist repeats a question until it is neither refused nor unknown.
func insist(ask func() (any, error)) (reply any, err error) {
	eventually(func() bool {
		reply, err = ask()
		return err == nil && reply != nil
	})
	return reply, err
}

// brief is the lease of requests that only test whether they are served.
const brief = 500 * time.Millisecond

// lockAndUnlock insists on a key, and returns when it was given.
func (c *caller) lockAndUnlock(key string) (given time.Time, err error) {
	var began time.Time
	reply, err := insist(func() (any, error) {
		began = time.Now()
		return c.ask("DLOCK", key, brief.Milliseconds())
	})
	given = time.Now()
	grant, ok := reply.([]any)
	if !ok {
		return given, fmt.Errorf("DLOCK %s within %v: %v, %v", key, waitTimeout, reply, err)
	}
	if err := givenBack(began, func() (any, error) { return c.ask("DUNLOCK", key, grant[0]) }); err != nil {
		return given, fmt.Errorf("DUNLOCK %s: %w", key, err)
	}
	return given, nil
}

// givenBack ends what was requested at that instant, and repeats that until
// it is answered: a machine may be so busy that it is not decided at once. 1 is
// wanted where it is certain: by the first answer, if that came before the end.
func givenBack(began time.Time, end func() (any, error)) error {
	sent := 0
	reply, err := insist(func() (any, error) {
		sent++
		return end()
	})
	if err != nil || reply != int64(1) && sent == 1 && time.Since(began) < brief/2 {
		return fmt.Errorf("%v, %v; want 1", reply, err)
	}
	return nil
}

func (l *locks) verdict() (string, error) {
	h := l.record.History()
	count := map[checker.OpKind]int{}
	for i := range h {
		if h[i].Outcome == checker.OK {
			count[h[i].Op]++
		}
	}
	tally := fmt.Sprintf("%d calls: %d grants, %d extensions, %d releases answered", len(h), count[checker.Acquire], count[checker.Extend], count[checker.Release])
	return checked(tally, checker.Check(h))
}

// checked keeps apart what was violated from what could not be searched in time.
func checked(tally string, err error) (string, error) {
	var broken []error
	open := 0
	for _, e := range parts(err) {
		if undecided := (*checker.Undecided)(nil); errors.As(e, &undecided) {
			open++
			continue
		}
		broken = append(broken, e)
	}
	if open > 0 {
		tally += fmt.Sprintf("; %d stretches were not searched to the end", open)
	}
	return tally, errors.Join(broken...)
}

// parts are the errors that were joined.
func parts(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !ok:
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, parts(e)...)
	}
	return all
}

func (l *locks) dump(w io.Writer) error { return l.record.History().Dump(w) }
