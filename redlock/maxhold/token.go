package maxhold

// token.go puts deadlines into generated tokens, which are redlockd's own: their form is promised to nobody.
//
// A token with a deadline has the length and the mark of every other one. Its 27 characters have two bits
// more than its 20 bytes; they are 01 instead of 00. Behind the daemon's mark stand the deadline, in ms of the
// masters' clock, and a sum; 80 random bits are left. A client may choose a token of this form. So a deadline
// that is further away than the client's own longest time is none.

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"time"

	"redlockd/redlock/engine"
)

const (
	tokenLength = 27
	markBytes   = 3
	sumAt       = markBytes + 6
)

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// spare are the two bits that the last character has beyond the bytes of a token.
func spare(t engine.Token) int { return strings.IndexByte(alphabet, t[len(t)-1]) & 3 }

// generated is the generated part of a token: that of a level stands behind its owner.
func generated(t engine.Token) engine.Token {
	if engine.OwnerOf(t) != "" {
		return t[len(t)-tokenLength:]
	}
	return t
}

// isGenerated reports whether a token has the form of generated ones.
func isGenerated(t engine.Token) bool {
	t = generated(t)
	if len(t) != tokenLength {
		return false
	}
	for i := range tokenLength {
		if strings.IndexByte(alphabet, t[i]) < 0 {
			return false
		}
	}
	return true
}

func sumOf(b []byte) byte {
	return byte(crc32.Update(crc32.ChecksumIEEE(b[:sumAt]), crc32.IEEETable, b[sumAt+1:]))
}

// withDeadline is a generated token with a deadline; one of another form stays as it is.
func withDeadline(t engine.Token, deadline int64) engine.Token {
	b, err := base64.RawURLEncoding.DecodeString(string(t))
	if err != nil || len(t) != tokenLength {
		return t
	}
	var at [8]byte
	binary.BigEndian.PutUint64(at[:], uint64(deadline))
	copy(b[markBytes:], at[2:])
	b[sumAt] = sumOf(b)
	text := []byte(base64.RawURLEncoding.EncodeToString(b))
	last := &text[tokenLength-1]
	*last = alphabet[strings.IndexByte(alphabet, *last)|1]
	return engine.Token(text)
}

// deadlineIn is the deadline in a token; 0 if it has none.
func deadlineIn(t engine.Token) int64 {
	t = generated(t)
	if len(t) != tokenLength || spare(t) != 1 {
		return 0
	}
	b, err := base64.RawURLEncoding.DecodeString(string(t))
	if err != nil || b[sumAt] != sumOf(b) {
		return 0
	}
	var at [8]byte
	copy(at[2:], b[markBytes:sumAt])
	return int64(binary.BigEndian.Uint64(at[:]))
}

func hasDeadline(t engine.Token) bool { return deadlineIn(t) > 0 }

// inToken is the deadline in a token, for a client with that longest time; 0 if there is none that counts.
func (m *MaxHold) inToken(t engine.Token, db int, own time.Duration) int64 {
	at := deadlineIn(t)
	if at == 0 {
		return 0
	}
	if own == 0 {
		own = maxDeadline
	}
	now := m.now(db)
	if at < now-maxDeadline.Milliseconds() || at > now+(own+time.Second).Milliseconds() { // the clocks of two daemons differ
		return 0
	}
	return at
}
