package pool

import (
	"testing"
	"time"
)

func TestHistogram_EveryDurationIsBelowItsBoundAndNotBelowTheOneBefore(t *testing.T) {
	for d := 16 * time.Microsecond; d < Bound(buckets-1); d += d/7 + time.Microsecond {
		i := bucket(d)
		if d >= Bound(i) || i > 0 && d < Bound(i-1) {
			t.Fatalf("%s is in bucket %d, which ends at %s", d, i, Bound(i))
		}
	}
	for d, want := range map[time.Duration]int{-time.Second: 0, 0: 0, 15 * time.Microsecond: 0, time.Hour: buckets - 1} {
		if got := bucket(d); got != want {
			t.Errorf("%s is in bucket %d, want %d", d, got, want)
		}
	}
}

func TestHistogram_QuantilesAreAtMostAQuarterMoreThanTheTruth(t *testing.T) {
	var h Histogram
	if h.Quantile(0.5) != 0 {
		t.Error("an empty histogram has a median")
	}
	for i := range 1000 {
		h.Note(time.Duration(i+100) * time.Microsecond)
	}
	for part, truth := range map[float64]time.Duration{0: 100 * time.Microsecond, 0.5: 600 * time.Microsecond, 0.99: 1090 * time.Microsecond, 1: 1099 * time.Microsecond} {
		if got := h.Quantile(part); got < truth || got > truth+truth/4+time.Microsecond {
			t.Errorf("quantile %.2f is %s, the truth %s", part, got, truth)
		}
	}
	if h.Count() != 1000 || h.Sum != 599500*time.Microsecond {
		t.Errorf("%d round trips of %s", h.Count(), h.Sum)
	}
}
