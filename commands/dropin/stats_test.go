package dropin

import (
	"testing"
	"time"
)

func TestStats_QuantileIsTheEndOfItsBucket(t *testing.T) {
	var f Stat
	if f.Quantile(.99) != 0 {
		t.Error("of nothing")
	}
	f.Times[0], f.Times[3] = 98, 2
	if f.Quantile(.5) != 64*time.Microsecond || f.Quantile(.99) != 512*time.Microsecond {
		t.Errorf("%v, %v", f.Quantile(.5), f.Quantile(.99))
	}
	var counted Stats
	w := Stopwatch{counted.of("", "release"), time.Now().Add(-time.Hour)}
	w.Stop(true, nil)
	if n := counted.List()[0].Times[timeBuckets-1]; n != 1 {
		t.Errorf("%d lasted longer than all bounds", n)
	}
}
