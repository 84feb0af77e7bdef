package quorum

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// pureTTLs reach to what no configuration will ask for.
var pureTTLs = []time.Duration{
	10 * time.Millisecond, 11 * time.Millisecond, 99 * time.Millisecond, time.Second, time.Minute,
	24 * time.Hour, 365 * 24 * time.Hour, 100 * 365 * 24 * time.Hour,
}

func TestValidity_AHoldersDeadlineIsOnePercentAndTwoMillisecondsBeforeTheEnd(t *testing.T) {
	for _, ttl := range pureTTLs {
		start := 3 * time.Hour
		if got, want := Deadline(start, ttl), start+ttl-ttl/100-2*time.Millisecond; got != want {
			t.Errorf("ttl %v: deadline %v, want %v", ttl, got, want)
		}
		if Deadline(start, ttl) <= start {
			t.Errorf("ttl %v leaves nothing at all", ttl)
		}
	}
}

func TestValidity_ACopyOutlastsItsLeaseAndShowsWhatWroteIt(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for range 200_000 {
		now := r.Int64N(1 << 52)
		ttl := time.Duration(1+r.Int64N(1<<36)) * time.Millisecond
		late := time.Duration(1+r.Int64N(2000)) * time.Millisecond
		end := Expiry(now, ttl, late)
		if end%8 != 0 {
			t.Fatalf("expiry(%d, %v, %v) = %d, want a multiple of 8", now, ttl, late, end)
		}
		// Sent now and executed up to late afterwards, it still lasts for ttl.
		least := now + ttl.Microseconds() + late.Microseconds()
		if end*1000 < least || end*1000 > least+10_000 {
			t.Fatalf("expiry(%d, %v, %v) = %d ms, want within 10 ms above %d µs", now, ttl, late, end, least)
		}
		if h := RepairedExpiry(now, ttl, late); h != end+4 || h%8 != 4 {
			t.Fatalf("repaired, it ends at %d beside %d, want the class of 4", h, end)
		}
		left := time.Duration(1 + r.Int64N(1<<50)) // of a lease, any fraction of a millisecond
		if h := RepairedExpiry(now, left, late); h*1000 < now+left.Microseconds()+late.Microseconds() {
			t.Fatalf("repaired (%d, %v, %v): %d ms is too short", now, left, late, h)
		}
	}
}

func TestValidity_AnUndoReachesNoCopyThatWasProlonged(t *testing.T) {
	for now := range int64(20_000) {
		end := Expiry(now, 10*time.Millisecond, 100*time.Millisecond)
		for prolonged := end - 8; prolonged <= end+8; prolonged++ {
			if prolonged%8 == 4 && prolonged >= end-1 && prolonged <= end+1 {
				t.Fatalf("the undo of %d takes a copy that ends at %d", end, prolonged)
			}
		}
	}
}

func TestValidity_ExtremeTimesDoNotOverflow(t *testing.T) {
	const latest = 1 << 53 // µs, the year 2255
	for _, ttl := range pureTTLs {
		end := Expiry(latest, ttl, 10*time.Second)
		if end <= latest/1000 || end < latest/1000+ttl.Milliseconds() || end > math.MaxInt64/1000 {
			t.Errorf("ttl %v: expiry %d", ttl, end)
		}
	}
	if end := Expiry(0, 10*time.Millisecond, time.Millisecond); end != 16 {
		t.Errorf("at the epoch: %d, want 16", end)
	}
}
