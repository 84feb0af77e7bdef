// A lock as a function with a context, for go-redis. Copy Lock. Run: go run ./goredis_lock 127.0.0.1:7379
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	ErrTaken = errors.New("another client still holds the lock")
	ErrLost  = errors.New("the lock was lost, or its validity is over")
)

// Lock is the name of a lock and its times. All of them must be set.
type Lock struct {
	Key     string
	TTL     time.Duration
	Wait    time.Duration // at most, for the grant
	Longest time.Duration // for which work may hold the lock
}

// Do calls work while it holds the lock. The context of work ends when the lock is lost. Work gives the fence to the
// resource. The error is ErrTaken or ErrLost in these cases, and has the error of work.
func (l Lock) Do(ctx context.Context, server redis.Options, work func(ctx context.Context, fence int64) error) error {
	server.ReadTimeout = l.Wait + 10*time.Second // longer than the WAIT
	server.MaxRetries = -1                       // no command is sent twice
	client := redis.NewClient(&server)
	defer client.Close()  // releases what may be left of the lock
	conn := client.Conn() // HOLD needs one connection that is never opened anew
	defer conn.Close()

	watching := context.AfterFunc(ctx, func() { client.Close() }) // ends the WAIT
	granted, err := conn.Do(ctx, "DLOCK", l.Key, l.TTL.Milliseconds(),
		"WAIT", l.Wait.Milliseconds(), "HOLD", l.Longest.Milliseconds()).Slice()
	if !watching() {
		return context.Cause(ctx)
	} else if errors.Is(err, redis.Nil) {
		return ErrTaken
	} else if err != nil {
		return fmt.Errorf("DLOCK: %w", err)
	}

	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	over := time.AfterFunc(l.TTL, func() { lose(ErrLost); client.Close() }) // Close ends a DEXTEND without a reply
	defer over.Stop()
	end := time.Now().Add(l.Longest)
	extend := func() error {
		sent := time.Now() // the validity counts from here
		validity, err := conn.Do(ctx, "DEXTEND", l.Key, granted[0], l.TTL.Milliseconds()).Int64()
		if err == nil {
			over.Reset(min(time.Until(sent.Add(time.Duration(validity)*time.Millisecond)), time.Until(end)))
		}
		return err
	}
	if err := extend(); errors.Is(err, redis.Nil) { // confirms the lock after the WAIT
		return ErrLost
	} else if err != nil {
		return fmt.Errorf("DEXTEND: %w", err)
	}
	go l.renew(ctx, extend, lose)

	err = work(ctx, granted[2].(int64))
	if errors.Is(context.Cause(ctx), ErrLost) {
		return errors.Join(ErrLost, err)
	}
	conn.Do(context.WithoutCancel(ctx), "DUNLOCK", l.Key, granted[0]) // if it fails, Close releases the lock
	return err
}

func (l Lock) renew(ctx context.Context, extend func() error, lose context.CancelCauseFunc) {
	for {
		select {
		case <-time.After(l.TTL / 3):
		case <-ctx.Done():
			return
		}
		var reply redis.Error // for example NOQUORUM: the next extension may succeed
		if err := extend(); errors.Is(err, redis.Nil) || err != nil && !errors.As(err, &reply) {
			lose(fmt.Errorf("%w: DEXTEND: %w", ErrLost, err))
			return
		}
	}
}

// A short piece of work, then two that last until the lock is lost.
func main() {
	server := redis.Options{Addr: "127.0.0.1:7379"}
	if len(os.Args) > 1 {
		server.Addr = os.Args[1]
	}
	invoice := Lock{Key: "invoice:7", TTL: 10 * time.Second, Wait: 10 * time.Minute, Longest: 10 * time.Minute}
	for _, duration := range []time.Duration{0, time.Hour, time.Hour} {
		err := invoice.Do(context.Background(), server, func(ctx context.Context, fence int64) error {
			fmt.Println("granted fence", fence)
			select {
			case <-time.After(duration):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		if errors.Is(err, ErrLost) {
			fmt.Println("lost")
		} else if err != nil {
			log.Fatal(err)
		} else {
			fmt.Println("released")
		}
	}
}
