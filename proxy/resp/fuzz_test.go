package resp

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"
	"testing/iotest"
)

// FuzzReader: whatever the bytes, a reply is the same however they are cut, within its
// limits, and nothing panics.
func FuzzReader(f *testing.F) {
	f.Add([]byte("*2\r\n$1\r\nx\r\n%1\r\n:1\r\n_\r\n"))
	f.Add([]byte("$-1\r\n>1\r\n~1\r\n-ERR x\r\n"))
	f.Fuzz(func(t *testing.T, input []byte) {
		once, pieces := NewReader(bytes.NewReader(input)), NewReader(iotest.OneByteReader(bytes.NewReader(input)))
		for _, r := range []*Reader{once, pieces} {
			r.MaxBytes, r.MaxItems, r.MaxDepth = 100, 50, 4
		}
		for {
			got, err := once.ReadValue()
			same, err2 := pieces.ReadValue()
			if !reflect.DeepEqual(got, same) || !reflect.DeepEqual(err, err2) {
				t.Fatalf("%+v, %v at once, %+v, %v byte by byte", got, err, same, err2)
			}
			var bad *Malformed
			if err != nil && !errors.As(err, &bad) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			if n, depth := valuesIn(got); n > 51 || depth > 5 {
				t.Fatalf("%d values, %d deep", n, depth)
			}
		}
	})
}

func valuesIn(v Value) (n, depth int) {
	for _, item := range v.Items {
		more, below := valuesIn(item)
		n, depth = n+more, max(depth, below)
	}
	return n + 1, depth + 1
}

// FuzzFrame: what a request is depends on its bytes alone, not on how they arrive, and a
// complete one stays within its limits and has the words that it was made of.
func FuzzFrame(f *testing.F) {
	for _, input := range []string{
		"*1\r\n$4\r\nPING\r\n", "*1\r\n$9223372036854775807\r\n", "*300000000\r\n", "*0\r\n", "PING x\r\n", "*2\r\n$1\r\na\r\n$0\r\n\r\nx", "\r\n", "*1\r\n$1\r\nabc", "\x16\x03\x01\n",
	} {
		f.Add([]byte(input))
	}
	limits := Limits{MaxLine: 64, MaxArgs: 8, MaxBulk: 100, MaxCommand: 300}
	f.Fuzz(func(t *testing.T, input []byte) {
		var once, drip Frame
		size, kind := once.Next(input, &limits)
		for n := range len(input) + 1 {
			dripped, dripKind := drip.Next(input[:n], &limits)
			if dripKind != Incomplete && (dripped != size || dripKind != kind || drip.Fault() != once.Fault()) || n == len(input) && dripKind != kind {
				t.Fatalf("%d, %v, %q of %d bytes; at once %d, %v, %q", dripped, dripKind, drip.Fault(), n, size, kind, once.Fault())
			}
			if dripKind != Incomplete {
				break
			}
		}
		if kind != Array {
			return
		}
		words := Words(string(input[:size]))
		if size > limits.MaxCommand || len(words) > limits.MaxArgs || string(once.Name(input)) != words[0] {
			t.Fatalf("%d bytes, %q, name %q", size, words, once.Name(input))
		}
		if again := AppendCommand(nil, words...); !bytes.Equal(again, input[:size]) {
			t.Fatalf("%q became %q", input[:size], again)
		}
	})
}

// FuzzSplitLine: quoting a word and splitting the line gives the word again.
func FuzzSplitLine(f *testing.F) {
	f.Add([]byte(`set "a b" 'c\'d' \x41 "\x41"`))
	f.Add([]byte("\x00\xff\"'\\"))
	f.Fuzz(func(t *testing.T, word []byte) {
		const hex = "0123456789abcdef"
		line := []byte(`"`)
		for _, c := range word {
			line = append(line, '\\', 'x', hex[c>>4], hex[c&15])
		}
		line = append(line, `" end`...)
		got, ok := SplitLine(line, 1024)
		if !ok || !reflect.DeepEqual(got, []string{string(word), "end"}) {
			t.Fatalf("%q came back as %q, %v", word, got, ok)
		}
		_, _ = SplitLine(word, 1024) // any line at all: no panic
	})
}
