package client

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// server is the daemon of the tests: the first argument, or REDLOCKD_ADDR.
var server redis.Options

func TestMain(m *testing.M) {
	flag.Parse()
	server.Addr = os.Getenv("REDLOCKD_ADDR")
	if flag.NArg() > 0 {
		server.Addr = flag.Arg(0)
	}
	if server.Addr == "" {
		fmt.Println("SKIP: REDLOCKD_ADDR names no daemon")
		return
	}
	os.Exit(m.Run())
}

func ask(t *testing.T, words ...any) any {
	t.Helper()
	other := redis.NewClient(&server)
	defer other.Close()
	reply, err := other.Do(t.Context(), words...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatalf("%q: %v", words, err)
	}
	return reply
}

func lock(t *testing.T) Lock {
	return Lock{Key: t.Name(), TTL: 10 * time.Second, Wait: time.Minute}
}

func TestDo_HoldsTheLockDuringTheWorkWithARisingFence(t *testing.T) {
	var fences []int64
	for range 2 {
		err := lock(t).Do(t.Context(), server, func(ctx context.Context, held *Held) error {
			fences = append(fences, held.Fence)
			if got := ask(t, "DLOCK", t.Name(), 1000); got != nil {
				t.Errorf("another client got %v", got)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if fences[0] < 1e15 || fences[1] <= fences[0] {
		t.Errorf("fences %d", fences)
	}
	if got := ask(t, "DLOCK", t.Name(), 1000); got == nil {
		t.Error("the lock is not released after the work")
	}
}

func TestDo_ReportsALockThatIsTaken(t *testing.T) {
	ask(t, "DLOCK", t.Name(), 30000)
	taken := Lock{Key: t.Name(), Wait: time.Millisecond}
	err := taken.Do(t.Context(), server, func(context.Context, *Held) error { t.Error("it works without the lock"); return nil })
	if !errors.Is(err, ErrTaken) {
		t.Errorf("error %v, want ErrTaken", err)
	}
	taken.Wait = 0
	if err := taken.Do(t.Context(), server, nil); !errors.Is(err, ErrTaken) {
		t.Errorf("without a wait: error %v, want ErrTaken", err)
	}
}

func TestDo_EndsTheWaitWithItsContext(t *testing.T) {
	ask(t, "DLOCK", t.Name(), 30000)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := lock(t).Do(ctx, server, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

func TestDo_EndsTheWorkWhenTheLockIsLost(t *testing.T) {
	err := lock(t).Do(t.Context(), server, func(ctx context.Context, held *Held) error {
		ask(t, "DFORCE", t.Name())
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), ErrLost) {
			t.Errorf("the context ended with %v", context.Cause(ctx))
		}
		return errors.New("stopped")
	})
	if !errors.Is(err, ErrLost) || err.Error() == ErrLost.Error() {
		t.Errorf("error %v, want ErrLost and that of the work", err)
	}
}

func TestDo_EndsAtItsLongest(t *testing.T) {
	short := lock(t)
	short.Longest = 300 * time.Millisecond
	err := short.Do(t.Context(), server, func(ctx context.Context, held *Held) error { <-ctx.Done(); return nil })
	if !errors.Is(err, ErrLost) {
		t.Errorf("error %v, want ErrLost", err)
	}
}

func TestExtend_LengthensTheLock(t *testing.T) {
	err := lock(t).Do(t.Context(), server, func(ctx context.Context, held *Held) error {
		validity, err := held.Extend(ctx, 25*time.Second)
		if err != nil || validity <= 10*time.Second || validity > 25*time.Second {
			t.Errorf("validity %v: %v", validity, err)
		}
		if left := ask(t, "PTTL", t.Name()).(int64); left <= 10000 {
			t.Errorf("the lock lasts %d ms", left)
		}
		ask(t, "DFORCE", t.Name())
		if _, err := held.Extend(ctx, time.Second); !errors.Is(err, ErrLost) {
			t.Errorf("after its loss: %v", err)
		}
		return nil
	})
	if err != nil && !errors.Is(err, ErrLost) { // the renewal may have seen it, too
		t.Error(err)
	}
}
