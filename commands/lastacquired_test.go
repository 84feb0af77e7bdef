package commands

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockd/commands/arg"
	"redlockd/redlock"
)

func name(i int) redlock.Key { return redlock.Key("key-" + strconv.Itoa(i)) }

func TestLastAcquired_DropsTheOldestBeyondItsBound(t *testing.T) {
	var h LastAcquired
	for i := range maxLastAcquired + 1 {
		h.Remember(0, name(i), "12345678", time.Hour)
	}
	if n := len(h.locks); n > maxLastAcquired || n < maxLastAcquired/2 {
		t.Errorf("%d entries are kept", n)
	}
	if _, ok := h.Token(0, name(0)); ok {
		t.Error("the oldest is still there")
	}
	if _, ok := h.Token(0, name(maxLastAcquired)); !ok {
		t.Error("the newest is gone")
	}
}

func TestLastAcquired_DropsWhatHasExpiredFirst(t *testing.T) {
	var h LastAcquired
	h.Remember(0, "long", "12345678", time.Hour)
	h.Remember(0, "prolonged", "12345678", -time.Second)
	h.Prolong(0, "prolonged", "12345678", time.Hour)
	h.Remember(0, "not prolonged", "12345678", -time.Second)
	h.Prolong(0, "not prolonged", "another-token", time.Hour)
	for i := range maxLastAcquired {
		h.Remember(0, name(i), "12345678", -time.Second)
	}
	for key, want := range map[redlock.Key]bool{"long": true, "prolonged": true, "not prolonged": false, name(0): false} {
		if _, ok := h.Token(0, key); ok != want {
			t.Errorf("%s: remembered %t, want %t", key, ok, want)
		}
	}
}

func TestLastAcquired_IsBoundedInBytes(t *testing.T) {
	var h LastAcquired
	long := strings.Repeat("x", arg.MaxTokenBytes)
	for i := range maxLastAcquired {
		h.Remember(0, name(i), redlock.Token(long), time.Hour)
		if h.bytes > maxLastAcquiredBytes {
			t.Fatalf("%d bytes after %d locks", h.bytes, i+1)
		}
	}
	for i := range maxLastAcquired {
		h.Forget(0, name(i), redlock.Token(long))
	}
	if len(h.locks) != 0 || h.bytes != 0 {
		t.Errorf("empty, but %d locks and %d bytes are counted", len(h.locks), h.bytes)
	}
}

func TestLastAcquired_CountsARepeatedKeyOnce(t *testing.T) {
	var h LastAcquired
	for range 3 {
		h.Remember(1, "key", "12345678", time.Hour)
	}
	if h.bytes != len("key12345678") || len(h.locks) != 1 {
		t.Errorf("%d bytes, %d locks", h.bytes, len(h.locks))
	}
}

func TestLastAcquired_CountsTheLocksWithoutAnEnd(t *testing.T) {
	var h LastAcquired
	for _, key := range []redlock.Key{"forgotten", "ended", "again", "handed on"} {
		h.Remember(1, key, "12345678", Endless)
		h.Remember(1, key, "12345678", Endless) // repeated
	}
	h.Remember(1, "renewed for a time", "12345678", Unbounded)
	h.EndRenewal(1, "ended", "another-token")
	if n := h.endless.Load(); n != 4 {
		t.Errorf("%d locks have no end, want 4", n)
	}
	h.Forget(1, "forgotten", "12345678")
	h.EndRenewal(1, "ended", "12345678")
	h.EndRenewal(1, "ended", "12345678")
	h.Remember(1, "again", "12345678", time.Hour)
	if n := h.endless.Load(); n != 1 {
		t.Errorf("%d locks have no end, want 1", n)
	}
	h.HandOn()
	if n := h.endless.Load(); n != 1 {
		t.Errorf("%d locks have no end after RESET, want 1", n)
	}
	h.EndRenewal(1, "handed on", "12345678")
	if n := h.endless.Load(); n != 0 {
		t.Errorf("%d locks have no end, want none", n)
	}
}

func TestLastAcquired_ForgetsOnlyTheTokenThatWasReleased(t *testing.T) {
	var h LastAcquired
	h.Remember(0, "key", "second-token", time.Hour)
	h.Forget(0, "key", "first-token")
	if token, ok := h.Token(0, "key"); !ok || token != "second-token" {
		t.Errorf("got %q %t", token, ok)
	}
}

func TestLastAcquired_ServesManyGoroutines(t *testing.T) {
	var h LastAcquired
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 500 {
				h.Remember(g, name(i), "12345678", time.Hour)
				h.Token(g, name(i))
				h.Prolong(g, name(i), "12345678", time.Hour)
				h.Forget(g, name(i), "12345678")
			}
		})
	}
	all.Wait()
	if h.bytes != 0 || len(h.locks) != 0 {
		t.Errorf("%d bytes, %d locks are left", h.bytes, len(h.locks))
	}
}

// A lock with HOLD that is confirmed with DEXTEND is still held by this connection when that
// validity is over: it counts for deadlocks, and its next user after RESET must give its token.
func TestLastAcquired_ARenewedLockOutlastsItsExtension(t *testing.T) {
	for _, renewed := range []time.Duration{Unbounded, Endless} {
		var h LastAcquired
		h.SawToken(0, "other", "12345678") // the connection belongs to a pool
		h.Remember(0, "k", "12345678", renewed)
		h.Prolong(0, "k", "12345678", time.Nanosecond)
		time.Sleep(time.Microsecond)
		if held := h.Holds(func(redlock.Lease) bool { return true }); len(held) != 1 {
			t.Errorf("%v: it holds %v", renewed, held)
		}
		h.HandOn()
		if held := h.Holds(func(redlock.Lease) bool { return true }); len(held) != 1 {
			t.Errorf("%v: after RESET it holds %v", renewed, held)
		}
	}
}
