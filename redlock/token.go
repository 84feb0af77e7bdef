// This file generates tokens, which prove ownership of a lock.

package redlock

import (
	"crypto/rand"
	"encoding/base64"
)

// NewToken is 160 random bits in 27 characters, safe in URLs and shells.
func NewToken() Token {
	var b [20]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return Token(base64.RawURLEncoding.EncodeToString(b[:]))
}
