package dropin

import (
	"strings"
	"testing"
)

// FuzzRecognise: whatever text a client sends, with whatever keys and
// arguments, recognising it ends within the budget and nothing panics; the
// class fits the call, and another one with the same spelling of everything else
// gets the same class. Keys and arguments are separated by NULs.
func FuzzRecognise(f *testing.F) {
	for _, spellings := range behaviours {
		for _, text := range spellings {
			f.Add(text, "orders", "f3Kq8Zr1vN5tY7wB2mXc9dLh\x0020000")
		}
	}
	for _, text := range adversaries {
		f.Add(text, "orders\x00signal", "f3Kq8Zr1vN5tY7wB2mXc9dLh\x0020000\x00yes")
	}
	f.Fuzz(func(t *testing.T, text, keys, args string) {
		call := Call{Keys: strings.Split(keys, "\x00"), Args: strings.Split(args, "\x00")}
		program, err := load(text, false)
		if err != nil {
			return
		}
		class, err := probe(program, call)
		if program.steps < -1 || program.bytes < 0 {
			t.Fatalf("%d instructions and %d bytes are left", program.steps, program.bytes)
		}
		if err != nil {
			return
		}
		for h := Absent; h < holdings; h++ {
			reply, ok := class.Predict(h, call, "somebody else's token", 1000)
			if ok && class.Op != Read && class.Vote(call, reply) == Yes && !class.Does(h) {
				t.Fatalf("a refusal of %s counts as a yes: %+v", described(class), reply)
			}
		}
		again, err := load("-- again\n"+text, false)
		if strings.HasPrefix(text, "#") {
			return // only the first line may be that
		}
		if err != nil || again.form != program.form {
			t.Fatalf("a comment makes it another form: %v", err)
		}
	})
}

// FuzzParseSet: no words panic, and what is read has the times it must have.
func FuzzParseSet(f *testing.F) {
	for _, seed := range []string{"k v", "k v NX PX 20000", "k v px 1 nx", "k v EXAT 9223372036854775807", "k v IFEQ x GET KEEPTTL", "k"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		r, err := ParseSet(append([]string{"SET"}, strings.Split(line, " ")...))
		timed := r.Expiry.Kind == After || r.Expiry.Kind == At
		if err == nil && timed != (r.Expiry.MS > 0) {
			t.Fatalf("%q is read as %+v", line, r)
		}
	})
}
