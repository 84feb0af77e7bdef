package main

import (
	"math"
	"testing"
	"time"
)

func TestHistogram_IsWithinOnePercent(t *testing.T) {
	for _, d := range []time.Duration{0, 1, 127, 128, 999, 65_537, 3 * time.Millisecond, 7 * time.Second, 30 * time.Minute} {
		var h histogram
		h.add(d)
		if got, want := h.quantile(0.5)*1000, float64(d); math.Abs(got-want) > max(want/100, 0.5) {
			t.Errorf("%v is shown as %.1f ns", d, got)
		}
	}
}

func TestHistogram_KeepsTheOrderOfQuantiles(t *testing.T) {
	var h, other histogram
	for i := range 1000 {
		h.add(time.Duration(i) * time.Microsecond)
	}
	other.add(time.Hour) // beyond the last bucket: shown as the longest there is
	h.merge(&other)
	for _, c := range []struct{ q, from, to float64 }{{0, 0, 1}, {0.5, 495, 505}, {0.99, 980, 1000}, {1, 30 * 60e6, 60 * 60e6}} {
		if got := h.quantile(c.q); got < c.from || got > c.to {
			t.Errorf("quantile %g is %g µs, want %g to %g", c.q, got, c.from, c.to)
		}
	}
	if got := new(histogram).quantile(0.5); got != 0 {
		t.Errorf("the median of nothing is %g", got)
	}
}
