package dropin

import (
	"testing"
)

// A known script: the SHA1 of its text and two look-ups. No text of a library
// is at hand, so a pin stands for the row of the table.
func BenchmarkRecognise_KnownSHA(b *testing.B) {
	text := behaviours["extend-add 1 (token ms =0) 0|1!|0|0"][0] // the longest
	class, _, err := classOfText(text, ScriptCall{Keys: []string{"k"}, Args: []string{"f3Kq8Zr1vN5tY7wB2mXc9dLh", "1000", "0"}})
	if err != nil {
		b.Fatal(err)
	}
	r, err := New(nil)
	if err != nil {
		b.Fatal(err)
	}
	r.pins[shaOf(text)] = class
	call := ScriptCall{Keys: []string{"orders"}, Args: []string{"f3Kq8Zr1vN5tY7wB2mXc9dLh", "20000", "0"}}
	b.ReportAllocs()
	for b.Loop() {
		if found, _ := r.Recognise("", text, call); found != class {
			b.Fatal(found)
		}
	}
}

func BenchmarkFind(b *testing.B) {
	r, err := New(nil)
	if err != nil {
		b.Fatal(err)
	}
	call := ScriptCall{Keys: []string{"orders"}, Args: []string{"f3Kq8Zr1vN5tY7wB2mXc9dLh"}}
	b.ReportAllocs()
	for b.Loop() {
		if c, _ := r.Find("", "c3f8721cbb97f72bc19e972846bd7aaf91901658", call); c == nil {
			b.Fatal("not found")
		}
	}
}

func BenchmarkEvaluator(b *testing.B) {
	eachBehaviour(b, func(row knownScript, text string) {
		if isBeyond(text) {
			return
		}
		b.Run(row.library+"/"+row.purpose, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := classOfText(text, row.example()); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}
