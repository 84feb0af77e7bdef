package chaos

// works_test.go: workers that do pieces of work once, or at most so many times.
// A key is used for one piece of work and never again.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"redlockd/redlock/checker"
)

const (
	workPlaces = 4 // pieces of work at a time
	workMax    = 3
)

type works struct {
	run      *run
	attempts *checker.Recorder // attempts are leases

	mu     sync.Mutex
	at     [workPlaces]int // which piece of work is at a place
	pieces int
	calls  []checker.WorkCall

	complaints
}

func newWorks(r *run) workload {
	w := &works{run: r, attempts: checker.NewRecorder(r.record.Now), pieces: workPlaces}
	for place := range w.at {
		w.at[place] = place
	}
	return w
}

// find is the piece of work at some place, or at none: an old one.
func (w *works) find(c *caller) (place, piece int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.random.IntN(8) == 0 && w.pieces > workPlaces {
		return -1, c.random.IntN(w.pieces) // maybe it has ended, maybe that is forgotten
	}
	place = c.random.IntN(workPlaces)
	return place, w.at[place]
}

// next puts another piece where one has ended.
func (w *works) next(place, ended int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if place >= 0 && w.at[place] == ended {
		w.at[place] = w.pieces
		w.pieces++
	}
}

func (w *works) note(c checker.WorkCall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, c)
}

func (w *works) work(ctx context.Context, c *caller) {
	record := w.attempts.Client()
	for ctx.Err() == nil {
		if c.connect() {
			place, piece := w.find(c)
			job := job{works: w, caller: c, record: record, key: "work:" + strconv.Itoa(piece)}
			if ended := job.try(); ended {
				w.next(place, piece)
			}
			if job.token != "" {
				job.attend(ctx)
			}
		}
		c.rest(ctx, 30*time.Millisecond)
	}
}

// job is one worker at one piece of work.
type job struct {
	works   *works
	caller  *caller
	record  *checker.ClientRecorder
	key     string
	token   string
	attempt int64
	timeout time.Duration
	began   time.Duration // when the attempt was given
}

// try requests an attempt; true if the work has ended.
func (j *job) try() (ended bool) {
	j.timeout = 100*time.Millisecond + time.Duration(j.caller.random.Int64N(int64(500*time.Millisecond))).Truncate(time.Millisecond)
	words := []any{"DWORK", j.key, j.timeout.Milliseconds(), "MAX", workMax, "KEEP", j.caller.stand.keep().Milliseconds()}
	if j.caller.random.IntN(4) == 0 {
		words = append(words, "WAIT", 50)
	}
	now := j.works.run.record.Now
	began := now()
	call := j.record.Begin(checker.Acquire, j.key, "")
	reply, err := j.caller.ask(words...)
	answer, ok := reply.([]any)
	if err != nil || !ok {
		call.Unknown()
		return false
	}
	if answer[0] == "done" && (len(answer) != 3 || answer[2] != resultOf(j.key, answer[1])) {
		j.works.breaks("the result of %s is not what its last attempt left: %v", j.key, answer)
	}
	try := checker.WorkCall{Client: j.caller.number, Key: j.key, Op: checker.Try, State: answer[0].(string), Max: workMax, Invoke: began, Complete: now()}
	if try.State != "acquired" {
		call.Refused()
		j.works.note(try)
		return try.State == "done" || try.State == "exhausted"
	}
	j.attempt, j.token, j.began = answer[1].(int64), answer[2].(string), try.Complete
	call.GrantedUntil(j.token, deadline(began, answer[3]), answer[4].(int64))
	try.Attempt = j.attempt
	j.works.note(try)
	return false
}

// attend does the work: in time, too late, or never to the end.
func (j *job) attend(ctx context.Context) {
	c := j.caller
	often := func(n int) bool { return c.random.IntN(n) == 0 }
	spent := j.timeout / 4
	if often(5) {
		spent = 2 * j.timeout
	}
	c.rest(ctx, spent)
	if often(4) {
		j.extend()
		c.rest(ctx, spent)
	}
	switch {
	case often(5): // dies
		return
	case often(8):
		c.leave()
	}
	op := checker.Done
	if often(3) {
		op = checker.Fail
	}
	if !j.end(op) {
		j.end(op) // the first answer was not known
	}
}

func (j *job) extend() {
	began := j.works.run.record.Now()
	call := j.record.Begin(checker.Extend, j.key, j.token)
	reply, err := j.caller.ask("DWORKEXTEND", j.key, j.token, j.timeout.Milliseconds())
	switch {
	case err != nil:
		call.Unknown()
	case reply == nil:
		call.Refused()
	default:
		call.GrantedUntil(j.token, deadline(began, reply), 0)
	}
}

// end reports whether the answer is known. What is sent later than KEEP after the
// attempt began may be about work that was ended by others and is forgotten: the
// answer proves nothing then.
func (j *job) end(op checker.WorkOp) bool {
	word := "DWORKDONE"
	if op == checker.Fail {
		word = "DWORKFAIL"
	}
	now := j.works.run.record.Now
	said := checker.WorkCall{Client: j.caller.number, Key: j.key, Op: op, Attempt: j.attempt, Invoke: now()}
	call := j.record.Begin(checker.Release, j.key, j.token)
	words := []any{word, j.key, j.token}
	if op == checker.Done {
		words = append(words, "RESULT", resultOf(j.key, j.attempt))
	}
	reply, err := j.caller.ask(words...)
	said.Complete = now()
	said.Unknown = err != nil || said.Complete > j.began+j.caller.stand.keep()
	said.Accepted = !said.Unknown && reply == int64(1)
	j.works.note(said)
	if said.Unknown {
		call.Unknown()
		return err == nil
	}
	call.Released(said.Accepted)
	return true
}

// resultOf is what an attempt leaves: no other one's is to be shown for it.
func resultOf(key string, attempt any) string { return fmt.Sprintf("%s by %v", key, attempt) }

// probe: a piece of work that is new can be done.
func (w *works) probe(c *caller) error {
	w.mu.Lock()
	key := "work:" + strconv.Itoa(w.pieces)
	w.pieces++
	w.mu.Unlock()
	var began time.Time
	reply, err := insist(func() (any, error) {
		began = time.Now()
		return c.ask("DWORK", key, brief.Milliseconds(), "MAX", 3, "KEEP", 100)
	})
	answer, ok := reply.([]any)
	if !ok || answer[0] != "acquired" {
		return fmt.Errorf("DWORK %s: %v, %v", key, reply, err)
	}
	if err := givenBack(began, func() (any, error) { return c.ask("DWORKDONE", key, answer[2]) }); err != nil {
		return fmt.Errorf("DWORKDONE %s: %w", key, err)
	}
	return nil
}

func (w *works) verdict() (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	given, done := 0, 0
	for i := range w.calls {
		switch c := &w.calls[i]; {
		case c.State == "acquired":
			given++
		case c.Op == checker.Done && c.Accepted:
			done++
		}
	}
	tally := fmt.Sprintf("%d attempts at %d pieces of work, %d done", given, w.pieces, done)
	return checked(tally, errors.Join(w.complaints.all(), checker.CheckWork(w.calls, w.run.stand.keep()), checker.Check(w.attempts.History())))
}

func (w *works) dump(in io.Writer) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	encoder := json.NewEncoder(in)
	for i := range w.calls {
		if err := encoder.Encode(&w.calls[i]); err != nil {
			return err
		}
	}
	return w.attempts.History().Dump(in)
}
