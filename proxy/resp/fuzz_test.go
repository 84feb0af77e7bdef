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
