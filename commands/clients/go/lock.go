// Package client holds locks of redlockd for programs that use go-redis: it waits for the lock,
// extends it while the work lasts, ends the work's context when the lock is lost, and releases it.
package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Version is the version of this package.
const Version = "0.1.0"

var (
	// ErrTaken reports that another client held the lock during the whole wait.
	ErrTaken = errors.New("another client still holds the lock")
	// ErrLost reports that the lock was lost, or that its validity was over: the work must stop.
	ErrLost = errors.New("the lock was lost, or its validity is over")
)

// Lock is the name of a lock and its times.
type Lock struct {
	Key     string
	TTL     time.Duration // how long the lock lasts without an extension; 30 s if it is 0
	Wait    time.Duration // how long to wait for the grant at most; 0 is one try
	Longest time.Duration // for which work may hold the lock; 10 minutes if it is 0
}

// Held is a lock during its work.
type Held struct {
	Fence int64 // larger than that of every earlier holder: give it to the resource

	lock  Lock
	token string
	conn  *redis.Conn // the only one of its client: HOLD needs one that is never opened anew
	end   time.Time   // of the longest hold
	over  *time.Timer // of the validity
	mu    sync.Mutex  // one command at a time
}

// Do calls work while it holds the lock. The context of work ends when the lock is lost. The error is
// ErrTaken or ErrLost in these cases, and has the error of work. Server has the address and the login.
func (l Lock) Do(ctx context.Context, server redis.Options, work func(ctx context.Context, held *Held) error) error {
	if l.TTL == 0 {
		l.TTL = 30 * time.Second
	}
	if l.Longest == 0 {
		l.Longest = 10 * time.Minute
	}
	server.ReadTimeout = l.Wait + 10*time.Second // longer than the WAIT
	server.MaxRetries = -1                       // no command is sent twice
	client := redis.NewClient(&server)
	defer client.Close() // releases what may be left of the lock
	held, err := l.acquire(ctx, client)
	if err != nil {
		return err
	}
	defer held.conn.Close()

	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	// Closing the client ends a DEXTEND without a reply.
	held.over = time.AfterFunc(l.TTL, func() { lose(ErrLost); client.Close() })
	defer held.over.Stop()
	if _, err := held.Extend(ctx, l.TTL); err != nil { // confirms the lock after the WAIT
		return err
	}
	go held.renew(ctx, lose)

	err = work(ctx, held)
	if errors.Is(context.Cause(ctx), ErrLost) {
		return errors.Join(ErrLost, err)
	}
	held.mu.Lock()
	defer held.mu.Unlock()
	held.conn.Do(context.WithoutCancel(ctx), "DUNLOCK", l.Key, held.token) // if it fails, Close releases the lock
	return err
}

func (l Lock) acquire(ctx context.Context, client *redis.Client) (*Held, error) {
	held := &Held{lock: l, conn: client.Conn()}
	watching := context.AfterFunc(ctx, func() { client.Close() }) // ends the WAIT
	words := []any{"DLOCK", l.Key, l.TTL.Milliseconds()}
	if l.Wait > 0 {
		words = append(words, "WAIT", max(l.Wait.Milliseconds(), 1)) // WAIT 0 has no end
	}
	granted, err := held.conn.Do(ctx, append(words, "HOLD", l.Longest.Milliseconds())...).Slice()
	switch {
	case !watching():
		err = context.Cause(ctx)
	case errors.Is(err, redis.Nil):
		err = ErrTaken
	case err != nil:
		err = fmt.Errorf("DLOCK: %w", err)
	default:
		held.token, held.Fence, held.end = granted[0].(string), granted[2].(int64), time.Now().Add(l.Longest)
		return held, nil
	}
	held.conn.Close()
	return nil, err
}

// Extend makes the lock last at least ttl from now and returns how long it is valid. After an error
// reply, for example NOQUORUM, the lock is as it was. ErrLost means that the work must stop.
func (h *Held) Extend(ctx context.Context, ttl time.Duration) (validity time.Duration, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	sent := time.Now() // the validity counts from here
	ms, err := h.conn.Do(ctx, "DEXTEND", h.lock.Key, h.token, ttl.Milliseconds()).Int64()
	var reply redis.Error
	switch {
	case errors.Is(err, redis.Nil):
		return 0, ErrLost
	case errors.As(err, &reply):
		return 0, fmt.Errorf("DEXTEND: %w", err)
	case err != nil: // the connection has ended, and with it the lock
		return 0, fmt.Errorf("%w: DEXTEND: %w", ErrLost, err)
	}
	validity = min(time.Until(sent.Add(time.Duration(ms)*time.Millisecond)), time.Until(h.end))
	if !h.over.Reset(validity) { // lost stays lost
		h.over.Reset(0)
		return 0, ErrLost
	}
	return validity, nil
}

func (h *Held) renew(ctx context.Context, lose context.CancelCauseFunc) {
	for {
		select {
		case <-time.After(h.lock.TTL / 3):
		case <-ctx.Done():
			return
		}
		if _, err := h.Extend(ctx, h.lock.TTL); errors.Is(err, ErrLost) {
			lose(err)
			return
		}
	}
}
