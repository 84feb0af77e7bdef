package redlock

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestToken_IsTwentySevenSafeCharactersAndNeverTheSame(t *testing.T) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	seen := make(map[Token]bool, 100_000)
	used := map[rune]bool{}
	for range 100_000 {
		token := NewToken()
		if len(token) != 27 || seen[token] {
			t.Fatalf("token %q: %d characters, repeated %v", token, len(token), seen[token])
		}
		seen[token] = true
		for _, c := range token {
			used[c] = true
		}
	}
	for c := range used {
		if !strings.ContainsRune(alphabet, c) {
			t.Errorf("%q in a token", c)
		}
	}
	if len(used) != len(alphabet) {
		t.Errorf("%d different characters, want %d", len(used), len(alphabet))
	}
}

func TestErrors_StateWhatWasWrongAndWhatToDo(t *testing.T) {
	for want, err := range map[string]error{
		"2 of 5 masters answered, 3 needed: b=10.0.0.2:6379 down (connection refused), c dialing; the lease is unchanged": &NoQuorum{
			Answered: 2, Needed: 3, Total: 5, Missing: []string{"b=10.0.0.2:6379 down (connection refused)", "c dialing"}, Note: "the lease is unchanged"},
		"0 of 3 masters answered, 2 needed": &NoQuorum{Needed: 2, Total: 3},
		"the quorum answered after 95 ms, which leaves nothing of a ttl of 90 ms; the lease's old validity stands, use a longer ttl": &Expired{
			Elapsed: 95 * time.Millisecond, TTL: 90 * time.Millisecond, Extension: true},
		"the quorum answered after 95 ms, which leaves nothing of a ttl of 90 ms; what was taken is given back, use a longer ttl": &Expired{
			Elapsed: 95 * time.Millisecond, TTL: 90 * time.Millisecond},
		"operations in flight: limit 7 reached (--max-operations); nothing was done, try later": &Busy{
			What: "operations in flight", Limit: 7, Option: "--max-operations"},
		"2 of 5 masters are durable, 3 needed: a has appendonly no, b has appendfsync everysec; set appendonly yes, appendfsync always and no-appendfsync-on-rewrite no on them (one that has written without them must be restarted), or accept that a crash may repeat ids with --ids-durability=off": &NotDurable{
			Durable: 2, Needed: 3, Total: 5, Volatile: []string{"a has appendonly no", "b has appendfsync everysec"}},
		"counter 'orders' is remembered by 1 trusted masters, 3 needed, and the highest value found is 41; if it was never used, or its last id is known, send DIDRESEED orders VALUE with a value not below the last id that was given": &LostState{
			Counter: "orders", Trusted: 1, Needed: 3, Highest: 41},
		"counter 'orders' is at 9223372036854775807 and ends at 9223372036854775807; use another name": &Exhausted{
			Counter: "orders", Value: math.MaxInt64},
		"value 5 is below 9, which master a knows for counter 'orders': ids up to there may have been given; choose a value of at least 9": &BelowKnown{
			Counter: "orders", Value: 5, Known: 9, Master: "a"},
	} {
		if got := err.Error(); got != want {
			t.Errorf("%T says\n%s\nwant\n%s", err, got, want)
		}
	}
	for _, err := range []error{ErrHeld, ErrNotHeld, ErrWrongType, ErrShutdown} {
		if text := err.Error(); text == "" || strings.HasSuffix(text, ".") {
			t.Errorf("%q", text)
		}
	}
}
