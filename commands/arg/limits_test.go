package arg

import (
	"strconv"
	"testing"
	"time"
)

func TestBounds_AcceptBothEndsAndNothingBeyond(t *testing.T) {
	b := Bounds{Min: 3, Max: 5}
	for n := range int64(8) {
		got, err := b.Parse("n", strconv.FormatInt(n, 10))
		if (err == nil) != (n >= 3 && n <= 5) || err == nil && got != n {
			t.Errorf("%d: %d %v", n, got, err)
		}
	}
}

func TestBounds_ShowValueRangeAndOption(t *testing.T) {
	_, err := Milliseconds(10*time.Millisecond, time.Minute, "--max-ttl").ParseTime("timeout", "9223372036854775807")
	want := "timeout '9223372036854775807' is not an integer or out of range, allowed are 10 to 60000 ms (--max-ttl)"
	if err == nil || err.Error() != want {
		t.Errorf(" got %v\nwant %s", err, want)
	}
	_, err = Bounds{Min: 1, Max: 9}.Parse("MAX", "+1")
	if want := "MAX '+1' is not an integer or out of range, allowed are 1 to 9"; err == nil || err.Error() != want {
		t.Errorf(" got %v\nwant %s", err, want)
	}
}
