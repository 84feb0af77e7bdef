package resp

// request.go finds the end of the next command in a byte stream and checks its form. It is
// pure: no socket, no clock, no allocation. It stores its progress, so a request that
// arrives byte by byte costs as much as one that arrives at once. The result depends on
// the bytes alone, never on how the network split them.

import (
	"bytes"
	"math"
	"strconv"
)

// FrameKind classifies the bytes read so far.
type FrameKind uint8

const (
	Incomplete FrameKind = iota // not yet decided: more bytes are needed
	Array                       // a complete command as an array of bulks
	Inline                      // a complete line with at least one word
	Blank                       // an empty line or an empty array: ignored, as Redis does
	Broken                      // never a command; Frame.Fault is the reason
)

// Limits bound a request. The zero value allows nothing.
type Limits struct {
	MaxLine    int // bytes of an inline command, or of the header of an array or a bulk
	MaxArgs    int // words
	MaxBulk    int // bytes of a word
	MaxCommand int // bytes of a command, framing included

	// Limits before the login, with errors of their own as in Redis; 0 is none.
	UnauthArgs, UnauthBulk int
}

const (
	unauthArgsFault = "Protocol error: unauthenticated multibulk length"
	unauthBulkFault = "Protocol error: unauthenticated bulk length"
)

// tlsHello begins a handshake record of TLS, in all versions since SSL 3. TLSFault
// is the fault of a connection that begins with one.
const (
	tlsHello = "\x16\x03"
	TLSFault = "Protocol error: TLS was sent where a command is expected"
)

// UnauthFault returns why the words of an inline command exceed the limits before the
// login, "" if they do not.
func (l *Limits) UnauthFault(args []string) string {
	if l.UnauthArgs > 0 && len(args) > l.UnauthArgs {
		return unauthArgsFault
	}
	for _, arg := range args {
		if l.UnauthBulk > 0 && len(arg) > l.UnauthBulk {
			return unauthBulkFault
		}
	}
	return ""
}

// Frame is the progress within the command at the start of the buffer. The zero
// value is for its first byte; after a complete command start with a new one.
type Frame struct {
	counted bool // the array's header has been read
	inBulk  bool // the header of the bulk at `at` has been read
	nul     bool // an inline line holds a NUL
	at      int  // everything before is valid
	scan    int  // the line at `at` has no end before here
	left    int  // bulks still to come, the current one included
	size    int  // of the current bulk
	name    int  // where the first word of an array starts
	nameLen int
	fault   string
}

// Fault returns the reason for which a command is broken: the error's text without "ERR ".
func (f *Frame) Fault() string { return f.fault }

// Name is the first word of b, the complete array that Next has just found.
func (f *Frame) Name(b []byte) []byte { return b[f.name : f.name+f.nameLen] }

// Next classifies b, which starts with the command and may be longer or shorter.
// size is the command's length if the result is array, inline or blank. A second call
// without new bytes returns the same result.
func (f *Frame) Next(b []byte, limits *Limits) (size int, v FrameKind) {
	switch {
	case len(b) == 0:
		return 0, Incomplete
	case b[0] != '*':
		return f.line(b, limits)
	}
	if !f.counted {
		if size, v := f.header(b, limits); v != Array {
			return size, v
		}
	}
	for f.left > 0 {
		if v := f.bulk(b, limits); v != Array {
			return 0, v
		}
	}
	return f.at, Array
}

// header reads "*count\r\n".
func (f *Frame) header(b []byte, limits *Limits) (size int, v FrameKind) {
	end, v := f.crlf(b, limits, "too big mbulk count string", "invalid multibulk length")
	if v != Array {
		return 0, v
	}
	count, ok := ParseInteger(b[1:end])
	if !ok || count > int64(limits.MaxArgs) {
		return 0, f.breaks("invalid multibulk length")
	}
	if limits.UnauthArgs > 0 && count > int64(limits.UnauthArgs) {
		return 0, f.breaksBy(unauthArgsFault)
	}
	if count <= 0 {
		return end + 2, Blank
	}
	f.counted, f.left, f.at = true, int(count), end+2
	return 0, Array
}

// bulk reads one "$length\r\n…\r\n", or the received part of it.
func (f *Frame) bulk(b []byte, limits *Limits) FrameKind {
	if f.at == len(b) {
		return Incomplete
	}
	if !f.inBulk {
		if b[f.at] != '$' {
			return f.breaks("expected '$', got '" + string(b[f.at:f.at+1]) + "'")
		}
		end, v := f.crlf(b, limits, "too big bulk count string", "invalid bulk length")
		if v != Array {
			return v
		}
		size, ok := ParseInteger(b[f.at+1 : end])
		if !ok || size < 0 || size > int64(limits.MaxBulk) {
			return f.breaks("invalid bulk length")
		}
		if limits.UnauthBulk > 0 && size > int64(limits.UnauthBulk) {
			return f.breaksBy(unauthBulkFault)
		}
		// Both summands are bounded by options, so the sum cannot overflow.
		if end+2+int(size)+2 > limits.MaxCommand {
			return f.breaks("too big command, at most " + strconv.Itoa(limits.MaxCommand) + " bytes are allowed")
		}
		f.inBulk, f.at, f.size = true, end+2, int(size)
		if f.name == 0 {
			f.name, f.nameLen = f.at, f.size
		}
	}
	tail := f.at + f.size
	if len(b) > tail && b[tail] != '\r' || len(b) > tail+1 && b[tail+1] != '\n' {
		return f.breaks("invalid bulk length")
	}
	if len(b) < tail+2 {
		return Incomplete
	}
	f.inBulk, f.at = false, tail+2
	f.left--
	return Array
}

// crlf finds the CR that ends the header line at f.at. The line feed must
// follow it: a lone CR is rejected where Redis accepts any byte.
func (f *Frame) crlf(b []byte, limits *Limits, tooLong, invalid string) (cr int, v FrameKind) {
	f.scan = max(f.scan, f.at)
	end := min(len(b), f.at+limits.MaxLine+1)
	i := bytes.IndexByte(b[f.scan:end], '\r')
	switch {
	case i < 0 && end == f.at+limits.MaxLine+1:
		return 0, f.breaks(tooLong)
	case i < 0:
		f.scan = end
		return 0, Incomplete
	}
	f.scan += i
	switch {
	case f.scan+1 == len(b):
		return 0, Incomplete
	case b[f.scan+1] != '\n':
		return 0, f.breaks(invalid)
	}
	return f.scan, Array
}

// line classifies an inline command. A line with a NUL in it never ends, as in
// Redis, whose search stops there. A TLS hello on this port would be such a line;
// it is rejected at its first two bytes, so that its client need not await a deadline.
func (f *Frame) line(b []byte, limits *Limits) (size int, v FrameKind) {
	if bytes.HasPrefix(b, []byte(tlsHello)) {
		return 0, f.breaksBy(TLSFault)
	}
	end := min(len(b), limits.MaxLine+1)
	if !f.nul && f.scan < end {
		part := b[f.scan:end]
		i := bytes.IndexByte(part, '\n')
		if i >= 0 {
			part = part[:i]
		}
		if f.nul = bytes.IndexByte(part, 0) >= 0; !f.nul && i >= 0 {
			if len(bytes.TrimLeft(b[:f.scan+i], whitespace)) == 0 {
				return f.scan + i + 1, Blank
			}
			return f.scan + i + 1, Inline
		}
		f.scan = end
	}
	if end == limits.MaxLine+1 {
		return 0, f.breaks("too big inline request")
	}
	return 0, Incomplete
}

func (f *Frame) breaks(why string) FrameKind { return f.breaksBy("Protocol error: " + why) }

func (f *Frame) breaksBy(fault string) FrameKind {
	f.fault = fault
	return Broken
}

// ParseInteger reads a decimal number as strictly as Redis does: no sign but a
// minus, no leading zero, no blanks, nothing beyond int64.
func ParseInteger[T string | []byte](text T) (n int64, ok bool) {
	negative := len(text) > 1 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	if len(text) == 0 || len(text) > 19 || text[0] == '0' && (len(text) > 1 || negative) {
		return 0, false
	}
	var u uint64 // 19 digits fit
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		u = u*10 + uint64(text[i]-'0')
	}
	switch {
	case negative && u <= math.MaxInt64+1:
		return -int64(u-1) - 1, true
	case !negative && u <= math.MaxInt64:
		return int64(u), true
	}
	return 0, false
}

// Words splits a complete, valid array into its words. They share one copy.
func Words(raw string) []string {
	number := func(at int) (n, after int) {
		for ; raw[at] != '\r'; at++ {
			n = n*10 + int(raw[at]-'0')
		}
		return n, at + 2
	}
	count, at := number(1)
	args := make([]string, count)
	for i := range args {
		size, start := number(at + 1)
		args[i] = raw[start : start+size]
		at = start + size + 2
	}
	return args
}
