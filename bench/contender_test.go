// The clients of the mixed fleet, of both kinds. Each records its calls, and relies on a
// lock exactly as long as its documentation allows.

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/redis/go-redis/v9"

	"redlockd/redlock/checker"
)

// redsyncContender locks on the masters directly.
type redsyncContender struct {
	contest *contest
	record  *checker.ClientRecorder
	number  int
	locks   *redsync.Redsync
	end     func()
	rounds  int
}

func newRedsyncContender(c *contest, masters []string) *redsyncContender {
	locks, end := dialRedsync(masters, 4)
	return &redsyncContender{contest: c, record: c.recorder.Client(), number: len(c.contenders), locks: locks, end: end}
}

func (r *redsyncContender) close() { r.end() }

// round continues after the context ends: it completes what it has started.
func (r *redsyncContender) round(ctx context.Context, w wish) {
	r.rounds++
	token := fmt.Sprintf("redsync-%d-%d", r.number, r.rounds)
	mutex := r.locks.NewMutex(w.key, redsync.WithExpiry(w.ttl), redsync.WithTries(1),
		redsync.WithGenValueFunc(func() (string, error) { return token, nil }))
	call := r.record.Begin(checker.Acquire, w.key, token)
	if err := mutex.LockContext(context.Background()); err != nil {
		call.Refused() // redsync undoes it on all masters that it reaches
		return
	}
	call.GrantedUntil(token, r.contest.recorder.At(mutex.Until()), 0)
	_ = pause(ctx, w.hold) // shorter at the end of the contest
	if w.lapse {
		return
	}
	call = r.record.Begin(checker.Release, w.key, token)
	released, err := mutex.UnlockContext(context.Background())
	if failed := new(redsync.RedisError); errors.As(err, &failed) {
		r.contest.noAnswer()
		call.Unknown()
		return
	}
	call.Released(released)
}

// dlockContender locks through a daemon, with the default options of its client.
type dlockContender struct {
	contest *contest
	record  *checker.ClientRecorder
	client  *redis.Client
}

func newDLOCKContender(c *contest, daemon string) *dlockContender {
	return &dlockContender{contest: c, record: c.recorder.Client(), client: redis.NewClient(&redis.Options{Addr: daemon})}
}

func (d *dlockContender) close() { d.client.Close() }

func (d *dlockContender) round(ctx context.Context, w wish) {
	token, ok := d.lock(w)
	if !ok {
		return
	}
	_ = pause(ctx, w.hold/2) // shorter at the end of the contest
	if w.extend {
		d.extend(w, token)
	}
	_ = pause(ctx, w.hold/2)
	if !w.lapse {
		d.unlock(w, token)
	}
}

// send sends one command. began is the time just before.
func (d *dlockContender) send(words ...any) (answer any, began time.Duration, err error) {
	began = d.contest.recorder.Now()
	answer, err = d.client.Do(context.Background(), words...).Result()
	return answer, began, err
}

func (d *dlockContender) lock(w wish) (token string, ok bool) {
	call := d.record.Begin(checker.Acquire, w.key, "")
	answer, began, err := d.send("DLOCK", w.key, w.ttl.Milliseconds())
	if err != nil {
		d.without(call, err)
		return "", false
	}
	grant, isArray := answer.([]any)
	if !isArray || len(grant) != 3 {
		d.contest.unexpected(fmt.Errorf("DLOCK answered %v", answer))
		return "", false
	}
	token = grant[0].(string)
	call.GrantedUntil(token, deadline(began, grant[1].(int64)), grant[2].(int64))
	return token, true
}

// deadline is the validity from the receipt of the reply, less one round trip. No command
// here waits, so that equals the validity from the time at which the command was sent.
func deadline(began time.Duration, validity int64) time.Duration {
	return began + time.Duration(validity)*time.Millisecond
}

func (d *dlockContender) extend(w wish, token string) {
	call := d.record.Begin(checker.Extend, w.key, token)
	answer, began, err := d.send("DEXTEND", w.key, token, w.ttl.Milliseconds())
	if err != nil {
		d.without(call, err)
		return
	}
	call.GrantedUntil(token, deadline(began, answer.(int64)), 0)
}

func (d *dlockContender) unlock(w wish, token string) {
	call := d.record.Begin(checker.Release, w.key, token)
	answer, _, err := d.send("DUNLOCK", w.key, token)
	if err != nil {
		d.without(call, err)
		return
	}
	call.Released(answer.(int64) == 1)
}

// without records a call that got an error: nil is a no, two errors mean that the outcome is
// unknown, and no other error is expected.
func (d *dlockContender) without(call checker.PendingCall, err error) {
	word, _, _ := strings.Cut(err.Error(), " ")
	switch {
	case errors.Is(err, redis.Nil):
		call.Refused()
	case word == "NOQUORUM", word == "EXPIRED":
		d.contest.noAnswer()
		call.Unknown()
	default:
		d.contest.unexpected(err)
		call.Unknown()
	}
}
