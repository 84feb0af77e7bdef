package arg

import (
	"strconv"
	"testing"
	"time"
)

// wordsOf are the arguments of a command.
func wordsOf(given ...string) Words { return Read(append([]string{"COMMAND"}, given...), nil) }

func TestBounds_AcceptBothEndsAndNothingBeyond(t *testing.T) {
	b := Bounds{Min: 3, Max: 5}
	for n := range int64(8) {
		words := wordsOf(strconv.FormatInt(n, 10))
		got, err := words.Int("n", b), words.Err()
		if (err == nil) != (n >= 3 && n <= 5) || err == nil && got != n || err != nil && got != 0 {
			t.Errorf("%d: %d %v", n, got, err)
		}
	}
}

func TestBounds_ShowValueRangeAndOption(t *testing.T) {
	words := wordsOf("9223372036854775807")
	words.Time("timeout", Milliseconds(10*time.Millisecond, time.Minute, "--max-ttl"))
	want := "timeout '9223372036854775807' is not an integer or out of range, allowed are 10 to 60000 ms (--max-ttl)"
	if err := words.Err(); err == nil || err.Error() != want {
		t.Errorf(" got %v\nwant %s", err, want)
	}
	words = wordsOf("+1")
	words.Int("MAX", Bounds{Min: 1, Max: 9})
	if err, want := words.Err(), "MAX '+1' is not an integer or out of range, allowed are 1 to 9"; err == nil || err.Error() != want {
		t.Errorf(" got %v\nwant %s", err, want)
	}
}
