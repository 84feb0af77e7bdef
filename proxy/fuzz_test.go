package proxy

import (
	"reflect"
	"testing"
)

// FuzzGuard: whatever the bytes, redcon receives the same commands and the client
// the same error however they are cut, and nothing panics.
func FuzzGuard(f *testing.F) {
	for _, row := range hostiles() {
		if len(row.input) < 4096 {
			f.Add([]byte(row.input), uint16(1))
			f.Add([]byte(row.input), uint16(5))
		}
	}
	f.Fuzz(func(t *testing.T, input []byte, cut uint16) {
		if len(input) > 1<<16 {
			t.Skip()
		}
		stream := string(input)
		once := listenTo(t, []string{stream})
		if got := listenTo(t, bytewise(stream)); !reflect.DeepEqual(got, once) {
			t.Fatalf("byte by byte %q, at once %q", got, once)
		}
		at := min(int(cut), len(stream))
		if got := listenTo(t, []string{stream[:at], stream[at:]}); !reflect.DeepEqual(got, once) {
			t.Fatalf("cut at %d %q, at once %q", at, got, once)
		}
		if len(once.refused) > 1 {
			t.Fatalf("refused %d times", len(once.refused))
		}
		for _, args := range once.commands {
			if len(args) == 0 || len(args) > 1024 {
				t.Fatalf("a command of %d words", len(args))
			}
		}
	})
}
