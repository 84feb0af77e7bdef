package resp

// reply.go reads replies. The other side is not trusted: lengths are checked before memory
// is allocated, and all values of a reply together stay within the limits.

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unsafe"
)

type Value struct {
	Kind  byte    // its type byte: + - : $ * % ~ > or _ for nil
	Text  string  // of + - and $; of a nil in RESP2 its line, "$-1" or "*-1"
	Int   int64   // of :
	Items []Value // of a list; of a map (%) keys and values in turn
}

// Err returns the Error of an error reply, else nil.
func (v Value) Err() error {
	if v.Kind == '-' {
		return Error(v.Text)
	}
	return nil
}

// Any returns nil, an int64, a string, an Error, or an []any of these.
func (v Value) Any() any {
	switch v.Kind {
	case '_':
		return nil
	case ':':
		return v.Int
	case '-':
		return Error(v.Text)
	case '+', '$':
		return v.Text
	}
	items := make([]any, len(v.Items))
	for i := range v.Items {
		items[i] = v.Items[i].Any()
	}
	return items
}

// Words returns a list of strings and numbers as texts, nil if v is none. A request is one.
func (v Value) Words() []string {
	if v.Kind != '*' && v.Kind != '>' {
		return nil
	}
	words := make([]string, len(v.Items))
	for i, item := range v.Items {
		switch item.Kind {
		case '$':
			words[i] = item.Text
		case ':':
			words[i] = strconv.FormatInt(item.Int, 10)
		default:
			return nil
		}
	}
	return words
}

// Error is the text of an error reply.
type Error string

func (e Error) Error() string { return string(e) }

// Code is the first word of the error.
func (e Error) Code() string {
	code, _, _ := strings.Cut(string(e), " ")
	return code
}

// Malformed is the error of a reply that is not RESP or exceeds a limit. The connection is
// of no more use.
type Malformed struct {
	Kind byte   // $ or *: the length of a string or list is wrong; else the line is
	Text string // that length, or the line without its end
}

func (m *Malformed) Error() string { return fmt.Sprintf("resp: malformed: %.40q", m.Text) }

// Reader reads the replies of one connection.
type Reader struct {
	*bufio.Reader

	// Limits of one reply. NewReader sets those of an ordinary one.
	MaxBytes int  // of all its strings together
	MaxLine  int  // bytes of a line; at least a buffer, which is 4 096
	MaxItems int  // values in all its lists together
	MaxDepth int  // lists in lists
	RESP2    bool // types of RESP3 are malformed

	bytes, items int // left for the rest of the reply
}

// NewReader returns a reader with the limits of ordinary replies: a megabyte, 65 536 values.
func NewReader(in io.Reader) *Reader {
	return &Reader{Reader: bufio.NewReader(in), MaxBytes: 1 << 20, MaxLine: 64 << 10, MaxItems: 1 << 16, MaxDepth: 16}
}

// ReadValue reads one reply. An error reply is a Value; err is a *Malformed or the
// connection's.
func (r *Reader) ReadValue() (Value, error) {
	r.bytes, r.items = r.MaxBytes, r.MaxItems
	return r.value(r.MaxDepth)
}

// value reads a value with lists of at most that depth.
func (r *Reader) value(depth int) (Value, error) {
	line, err := r.line()
	if err != nil {
		return Value{}, err
	}
	kind, rest := line[0], line[1:]
	switch {
	case kind == '+' || kind == '-':
		if r.bytes -= len(rest); r.bytes >= 0 {
			return Value{Kind: kind, Text: string(rest)}, nil
		}
	case r.RESP2 && kind != ':' && kind != '$' && kind != '*':
		return Value{}, &Malformed{Text: string(line)}
	case kind == '_' && len(rest) == 0:
		return Value{Kind: '_'}, nil
	}
	n, ok := ParseInteger(rest)
	switch {
	case !ok:
	case kind == ':':
		return Value{Kind: ':', Int: n}, nil
	case kind == '$' && n == -1:
		return Value{Kind: '_', Text: "$-1"}, nil
	case kind == '*' && n == -1:
		return Value{Kind: '_', Text: "*-1"}, nil
	case kind == '$':
		return r.bulk(n)
	case kind == '*' || kind == '%' || kind == '~' || kind == '>':
		return r.list(kind, n, depth)
	}
	return Value{}, &Malformed{Text: string(line)}
}

// line reads a line of at least a type byte, without its end. It is valid until the next read.
func (r *Reader) line() ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line, err = r.longLine(line)
	}
	if err != nil {
		return nil, err
	}
	end := len(line) - 2
	if end < 1 || line[end] != '\r' {
		return nil, &Malformed{Text: strings.TrimRight(string(line), "\r\n")}
	}
	return line[:end], nil
}

// longLine reads the rest of a line that does not fit the buffer.
func (r *Reader) longLine(start []byte) (line []byte, err error) {
	line, err = append(line, start...), bufio.ErrBufferFull
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(line) >= r.MaxLine {
			return nil, &Malformed{Text: string(line[:40])}
		}
		var part []byte
		part, err = r.ReadSlice('\n')
		line = append(line, part...)
	}
	return line, err
}

// bulk reads the rest of a string of n bytes, and the line end after it.
func (r *Reader) bulk(n int64) (Value, error) {
	if n < 0 || n > int64(r.bytes) {
		return Value{}, &Malformed{Kind: '$', Text: fmt.Sprint(n)}
	}
	r.bytes -= int(n)
	part := make([]byte, n+2)
	switch _, err := io.ReadFull(r, part); {
	case err != nil:
		return Value{}, err
	case part[n] != '\r' || part[n+1] != '\n':
		return Value{}, &Malformed{Text: string(part[n:])}
	}
	return Value{Kind: '$', Text: unsafe.String(unsafe.SliceData(part), n)}, nil // part does not change any more
}

// list reads the rest of a list of n values, or of a map of n pairs.
func (r *Reader) list(kind byte, n int64, depth int) (Value, error) {
	if n < 0 || n > int64(r.items) || kind == '%' && n > int64(r.items)/2 || depth == 0 {
		return Value{}, &Malformed{Kind: '*', Text: fmt.Sprint(n)}
	}
	if kind == '%' {
		n *= 2
	}
	r.items -= int(n)
	v := Value{Kind: kind, Items: make([]Value, 0, min(n, maxItemsAtOnce))}
	for range n {
		item, err := r.value(depth - 1)
		if err != nil {
			return v, err
		}
		v.Items = append(v.Items, item)
	}
	return v, nil
}

// maxItemsAtOnce values are allocated before they have arrived.
const maxItemsAtOnce = 64
