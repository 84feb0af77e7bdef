package resp

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReader_ReadsEveryKindOfReply(t *testing.T) {
	in := "+OK\r\n-ERR no\r\n:-7\r\n$5\r\na\r\nbc\r\n$0\r\n\r\n$-1\r\n*-1\r\n_\r\n*2\r\n$1\r\nx\r\n:3\r\n%1\r\n+k\r\n*0\r\n>1\r\n:1\r\n~0\r\n"
	want := []Value{
		{Kind: '+', Text: "OK"}, {Kind: '-', Text: "ERR no"}, {Kind: ':', Int: -7}, {Kind: '$', Text: "a\r\nbc"}, {Kind: '$'},
		{Kind: '_', Text: "$-1"}, {Kind: '_', Text: "*-1"}, {Kind: '_'},
		{Kind: '*', Items: []Value{{Kind: '$', Text: "x"}, {Kind: ':', Int: 3}}},
		{Kind: '%', Items: []Value{{Kind: '+', Text: "k"}, {Kind: '*', Items: []Value{}}}},
		{Kind: '>', Items: []Value{{Kind: ':', Int: 1}}}, {Kind: '~', Items: []Value{}},
	}
	plain := []any{"OK", Error("ERR no"), int64(-7), "a\r\nbc", "", nil, nil, nil, []any{"x", int64(3)}, []any{"k", []any{}}, []any{int64(1)}, []any{}}
	for name, r := range map[string]*Reader{
		"at once": NewReader(strings.NewReader(in)), "byte by byte": NewReader(iotest.OneByteReader(strings.NewReader(in))),
	} {
		for i := range want {
			got, err := r.ReadValue()
			if err != nil || !reflect.DeepEqual(got, want[i]) {
				t.Errorf("%s: read %+v, %v, want %+v", name, got, err, want[i])
			}
			if failed, _ := got.Any().(error); failed != got.Err() {
				t.Errorf("%s: the error of %+v is %v, want %v", name, got, got.Err(), failed)
			}
			if !reflect.DeepEqual(got.Any(), plain[i]) {
				t.Errorf("%s: %+v is %#v, want %#v", name, got, got.Any(), plain[i])
			}
		}
		if _, err := r.ReadValue(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v after the end", name, err)
		}
	}
}

func TestReader_ReadsLongStringsAndLines(t *testing.T) {
	long := strings.Repeat("x", 60_000)
	r := NewReader(strings.NewReader("$60000\r\n" + long + "\r\n-" + long + "\r\n+OK\r\n"))
	for _, want := range []Value{{Kind: '$', Text: long}, {Kind: '-', Text: long}, {Kind: '+', Text: "OK"}} {
		if got, err := r.ReadValue(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%c of %d bytes, %v, want %c of %d", got.Kind, len(got.Text), err, want.Kind, len(want.Text))
		}
	}
}

func TestReader_RejectsWhatIsNoReply(t *testing.T) {
	for _, in := range []string{
		"\r\n", "\n", "+\n", "OK\r\n", "+OK\n", "?1\r\n", ":\r\n", ":x\r\n", ":+1\r\n", ":01\r\n", "_x\r\n", "#t\r\n",
		"$x\r\n", "$-2\r\n", "$-0\r\n", "$1048577\r\n", "$9223372036854775807\r\n", "$99999999999999999999\r\n", "$1\r\nxyz", "$1\r\nx\rz",
		"*x\r\n", "*-2\r\n", "*65537\r\n", "*9223372036854775807\r\n", "%-1\r\n", "%4611686018427387904\r\n", "%32769\r\n", ">-1\r\n",
		"*2\r\n*65535\r\n", // more values than one reply may have, in two lists
		"*2\r\n$1048576\r\n" + strings.Repeat("x", 1<<20) + "\r\n$1\r\n", // more bytes, in two strings
		strings.Repeat("*1\r\n", 17),
		"+" + strings.Repeat("x", 2<<20) + "\r\n", "-" + strings.Repeat("x", 2<<20), // a line without end
	} {
		var bad *Malformed
		v, err := NewReader(strings.NewReader(in)).ReadValue()
		if !errors.As(err, &bad) {
			t.Errorf("%.40q: %c %.40q, %v; want a malformed reply", in, v.Kind, v.Text, err)
		}
	}
}

func TestReader_RejectsTypesOfRESP3WhereItIsNotSpoken(t *testing.T) {
	for _, in := range []string{"%0\r\n", "~0\r\n", ">0\r\n", "_\r\n", "*1\r\n_\r\n"} {
		r := NewReader(strings.NewReader(in))
		r.RESP2 = true
		var bad *Malformed
		if v, err := r.ReadValue(); !errors.As(err, &bad) {
			t.Errorf("%q: %+v, %v; want a malformed reply", in, v, err)
		}
	}
}

func TestReader_AllocatesNothingForWhatHasNotArrived(t *testing.T) {
	for _, in := range []string{"*65536\r\n", "%32768\r\n"} {
		v, err := NewReader(strings.NewReader(in)).ReadValue()
		if !errors.Is(err, io.EOF) || cap(v.Items) > maxItemsAtOnce {
			t.Errorf("%q: space for %d values, %v", in, cap(v.Items), err)
		}
	}
}

func TestReader_ReadsRequests(t *testing.T) {
	r := NewReader(strings.NewReader(string(AppendCommand(AppendCommand(nil, "DLOCK", "a\r\n", ""), "PING"))))
	for _, want := range [][]string{{"DLOCK", "a\r\n", ""}, {"PING"}} {
		if got, err := r.ReadValue(); err != nil || !reflect.DeepEqual(got.Words(), want) {
			t.Errorf("%q, %v, want %q", got.Words(), err, want)
		}
	}
}

func TestValue_HasWordsIfItIsAListOfThem(t *testing.T) {
	for in, want := range map[string][]string{
		"*2\r\n$1\r\na\r\n:-1\r\n": {"a", "-1"}, ">1\r\n$1\r\na\r\n": {"a"}, "*0\r\n": {}, "*1\r\n*0\r\n": nil, "*1\r\n$-1\r\n": nil, "$1\r\na\r\n": nil, "%0\r\n": nil,
	} {
		v, err := NewReader(strings.NewReader(in)).ReadValue()
		if got := v.Words(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %#v, %v, want %#v", in, got, err, want)
		}
	}
}

func TestError_BeginsWithItsCode(t *testing.T) {
	for text, want := range map[Error]string{"NOAUTH Authentication required.": "NOAUTH", "NOAUTH": "NOAUTH", "": ""} {
		if got := text.Code(); got != want || text.Error() != string(text) {
			t.Errorf("%q has the code %q, want %q", text, got, want)
		}
	}
}
