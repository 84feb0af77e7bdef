package proxy

// framing.go finds the end of the next command in a byte stream and checks its form. It is
// pure: no socket, no clock, no allocation. It stores its progress, so a request that
// arrives byte by byte costs as much as one that arrives at once. The result depends on
// the bytes alone, never on how the network split them.

import (
	"bytes"
	"math"
	"strconv"
)

// frameKind classifies the bytes read so far.
type frameKind uint8

const (
	incomplete frameKind = iota // not yet decided: more bytes are needed
	array                       // a complete command as an array of bulks
	inline                      // a complete line with at least one word
	blank                       // an empty line or an empty array: ignored, as Redis does
	broken                      // never a command; framing.fault is the reason
)

// framing is the progress within the command at the start of the buffer. The zero
// value is for its first byte; after a complete command start with a new one.
type framing struct {
	counted bool // the array's header has been read
	inBulk  bool // the header of the bulk at `at` has been read
	nul     bool // an inline line holds a NUL
	at      int  // everything before is valid
	scan    int  // the line at `at` has no end before here
	left    int  // bulks still to come, the current one included
	size    int  // of the current bulk
	name    int  // where the first word starts
	nameLen int
	fault   string // why it is broken: the error's text without "ERR "
}

// next classifies b, which starts with the command and may be longer or shorter.
// size is the command's length if the result is array, inline or blank. A second call
// without new bytes returns the same result.
func (f *framing) next(b []byte, limits *Options) (size int, v frameKind) {
	switch {
	case len(b) == 0:
		return 0, incomplete
	case b[0] != '*':
		return f.line(b, limits)
	}
	if !f.counted {
		if size, v := f.header(b, limits); v != array {
			return size, v
		}
	}
	for f.left > 0 {
		if v := f.bulk(b, limits); v != array {
			return 0, v
		}
	}
	return f.at, array
}

// header reads "*count\r\n".
func (f *framing) header(b []byte, limits *Options) (size int, v frameKind) {
	end, v := f.crlf(b, limits, "too big mbulk count string", "invalid multibulk length")
	if v != array {
		return 0, v
	}
	count, ok := parseLength(b[1:end])
	if !ok || count > int64(limits.MaxArgs) {
		return 0, f.breaks("invalid multibulk length")
	}
	if limits.unauth && count > maxUnauthArgs {
		return 0, f.breaksBy(unauthArgsFault)
	}
	if count <= 0 {
		return end + 2, blank
	}
	f.counted, f.left, f.at = true, int(count), end+2
	return 0, array
}

// bulk reads one "$length\r\n…\r\n", or the received part of it.
func (f *framing) bulk(b []byte, limits *Options) frameKind {
	if f.at == len(b) {
		return incomplete
	}
	if !f.inBulk {
		if b[f.at] != '$' {
			return f.breaks("expected '$', got '" + string(b[f.at:f.at+1]) + "'")
		}
		end, v := f.crlf(b, limits, "too big bulk count string", "invalid bulk length")
		if v != array {
			return v
		}
		size, ok := parseLength(b[f.at+1 : end])
		if !ok || size < 0 || size > int64(limits.MaxBulk) {
			return f.breaks("invalid bulk length")
		}
		if limits.unauth && size > maxUnauthBulk {
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
		return incomplete
	}
	f.inBulk, f.at = false, tail+2
	f.left--
	return array
}

// crlf finds the CR that ends the header line at f.at. The line feed must
// follow it: a lone CR is rejected where Redis accepts any byte.
func (f *framing) crlf(b []byte, limits *Options, tooLong, invalid string) (cr int, v frameKind) {
	f.scan = max(f.scan, f.at)
	end := min(len(b), f.at+limits.MaxInline+1)
	i := bytes.IndexByte(b[f.scan:end], '\r')
	switch {
	case i < 0 && end == f.at+limits.MaxInline+1:
		return 0, f.breaks(tooLong)
	case i < 0:
		f.scan = end
		return 0, incomplete
	}
	f.scan += i
	switch {
	case f.scan+1 == len(b):
		return 0, incomplete
	case b[f.scan+1] != '\n':
		return 0, f.breaks(invalid)
	}
	return f.scan, array
}

// line classifies an inline command. A line with a NUL in it never ends, as in
// Redis, whose search stops there. A TLS hello on this port starts with bytes
// that are no array and has a NUL among the first. So nothing in it is ever
// taken for a command; the limit or the deadline ends it.
func (f *framing) line(b []byte, limits *Options) (size int, v frameKind) {
	end := min(len(b), limits.MaxInline+1)
	if !f.nul && f.scan < end {
		part := b[f.scan:end]
		i := bytes.IndexByte(part, '\n')
		if i >= 0 {
			part = part[:i]
		}
		if f.nul = bytes.IndexByte(part, 0) >= 0; !f.nul && i >= 0 {
			if len(bytes.TrimLeft(b[:f.scan+i], whitespace)) == 0 {
				return f.scan + i + 1, blank
			}
			return f.scan + i + 1, inline
		}
		f.scan = end
	}
	if end == limits.MaxInline+1 {
		return 0, f.breaks("too big inline request")
	}
	return 0, incomplete
}

func (f *framing) breaks(why string) frameKind { return f.breaksBy("Protocol error: " + why) }

func (f *framing) breaksBy(fault string) frameKind {
	f.fault = fault
	return broken
}

// parseLength reads a decimal number as strictly as Redis does: no sign but a
// minus, no leading zero, no blanks, nothing beyond int64.
func parseLength(b []byte) (n int64, ok bool) {
	negative := len(b) > 1 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	if len(b) == 0 || len(b) > 19 || b[0] == '0' && (len(b) > 1 || negative) {
		return 0, false
	}
	var u uint64 // 19 digits fit
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		u = u*10 + uint64(c-'0')
	}
	switch {
	case negative && u <= math.MaxInt64+1:
		return -int64(u-1) - 1, true
	case !negative && u <= math.MaxInt64:
		return int64(u), true
	}
	return 0, false
}

// words splits a complete, valid array into its words. They share one copy.
func words(raw string) []string {
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
