package chaos

// sharedtokens_test.go: clients that use a daemon as one Redis, with a lock that they
// hold: they read it, take it once more, and give it less time.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"redlockd/pool/faulty"
	"redlockd/redlock/checker"
)

const retakeScript = `local v = redis.call('GET', KEYS[1]) if v and v ~= ARGV[1] then return 0 end redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1`

// complaints are replies to clients that are wrong whatever other clients did.
type complaints struct {
	mu     sync.Mutex
	broken []error
}

func (o *complaints) breaks(how string, words ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.broken) < 5 {
		o.broken = append(o.broken, fmt.Errorf(how, words...))
	}
}

func (o *complaints) all() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return errors.Join(o.broken...)
}

// look: the holder of a lock sees its own value.
func (d *dropIn) look(c *caller, key, value string, until time.Duration) {
	seen, err := c.ask("GET", key)
	if now := d.run.record.Now(); err == nil && seen != value && now < until {
		d.breaks("a lock is not seen: %q shows %v, although %s holds it for another %v", key, seen, value, until-now)
	}
}

// retake requests the lock that is held, for as long again.
func (d *dropIn) retake(c *caller, record *checker.ClientRecorder, key, value string, ttl time.Duration) {
	began := d.run.record.Now()
	call := record.Begin(checker.Acquire, key, value)
	reply, err := c.ask("EVAL", retakeScript, 1, key, value, ttl.Milliseconds())
	extended(call, reply, err, value, began+counted(ttl))
}

// extended notes what a script answered that takes or prolongs.
func extended(call checker.PendingCall, reply any, err error, value string, until time.Duration) {
	switch {
	case err != nil:
		call.Unknown()
	case reply != int64(1):
		call.Refused()
	default:
		call.GrantedUntil(value, until, 0)
	}
}

// cutShort takes a lock that no other client uses and gives it less time through any
// daemon. If that fails, the lease is what it was, and another value does not get it.
func (d *dropIn) cutShort(ctx context.Context, c *caller) {
	const brief = 60 * time.Millisecond
	n := d.values.Add(1)
	key, value, other := fmt.Sprint("short:", n), fmt.Sprint("mine-of-", n), fmt.Sprint("other-of-", n)
	began := d.run.record.Now()
	if reply, err := c.ask("SET", key, value, "NX", "PX", maxTTL.Milliseconds()); err != nil || reply != "OK" {
		return
	}
	until := began + counted(maxTTL)
	if c.random.IntN(4) == 0 {
		reply, err := c.ask("DEL", key) // no other client can have it
		if err == nil && reply != int64(1) && d.run.record.Now() < until {
			d.breaks("a lock was lost: DEL %s answers %v, although %s holds it until %v", key, reply, value, until)
		}
		return
	}
	for range 3 {
		c.leave()
		words := []any{"EVAL", renewScript, 1, key, value, brief.Milliseconds()}
		plain := c.random.IntN(2) == 0
		if plain {
			words = []any{"PEXPIRE", key, brief.Milliseconds()}
		}
		reply, err := c.ask(words...)
		if refused := faulty.ReplyError(""); plain || !errors.As(err, &refused) { // a PEXPIRE that is not decided may have shortened it
			if err == nil && reply == int64(0) && d.run.record.Now() < until {
				d.breaks("a lock was lost: %q is not held any more by %s, which is due it until %v", key, value, until)
			}
			return // it is shorter now, or may be
		}
		if !pause(ctx, 2*brief) {
			return
		}
		c.leave()
		reply, err = c.ask("SET", key, other, "NX", "PX", brief.Milliseconds())
		if now := d.run.record.Now(); err == nil && reply == "OK" && now < until {
			d.breaks("a lease was lost to an extension that failed: %q was given to %s, although %s holds it for another %v", key, other, value, until-now)
		}
	}
}
