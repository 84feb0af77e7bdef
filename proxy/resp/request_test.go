package resp

import (
	"strings"
	"testing"
)

func TestFraming_ReadsNumbersAsStrictlyAsRedis(t *testing.T) {
	good := map[string]int64{"0": 0, "7": 7, "-1": -1, "1024": 1024,
		"9223372036854775807": 1<<63 - 1, "-9223372036854775808": -1 << 63}
	for text, want := range good {
		if n, ok := ParseInteger([]byte(text)); !ok || n != want {
			t.Errorf("%q: got %d, %v", text, n, ok)
		}
	}
	for _, text := range []string{"", "-", "+1", "01", "-0", "-01", "00", " 1", "1 ", "1x", "0x1", "1.0", "٣",
		"9223372036854775808", "-9223372036854775809", "18446744073709551617", "99999999999999999999"} {
		if n, ok := ParseInteger([]byte(text)); ok {
			t.Errorf("%q was taken for %d", text, n)
		}
	}
}

func TestFraming_CostsTheSameByteByByte(t *testing.T) {
	// A header that is searched from its start for every byte would take
	// quadratic time; the place reached is remembered instead.
	limits := Limits{MaxLine: 64 << 10, MaxArgs: 1024, MaxBulk: 64 << 10, MaxCommand: 256 << 10}
	line := []byte("*" + strings.Repeat("1", 60_000))
	var f Frame
	for i := range line {
		if _, v := f.Next(line[:i+1], &limits); v != Incomplete {
			t.Fatalf("decided after %d bytes", i+1)
		}
		if f.scan != i+1 {
			t.Fatalf("after %d bytes the search would start at %d", i+1, f.scan)
		}
	}
}
