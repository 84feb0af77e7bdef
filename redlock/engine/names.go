package engine

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"

	"redlockd/pool"
)

// Key names what is locked. Token proves that its sender is the holder. Fence orders grants.
type (
	Key   string
	Token string
	Fence int64
)

// LeaseID names one lease.
type LeaseID struct {
	DB    int
	Key   Key
	Token Token
}

// Batch collects the operations of one read batch so that they are queued
// under one lock and leave in one flush per master. Nothing moves before Send.
type Batch = pool.Batch

// NewToken is 160 random bits in 27 characters, safe in URLs and shells.
func NewToken() Token {
	var b [20]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return Token(base64.RawURLEncoding.EncodeToString(b[:]))
}

// Tokens of the levels of a reentrant lock have the form owner + "#" + a token of NewToken. The
// scripts parse it, too (shape.lua): levels of one owner hold a key together, and nothing else
// does beside them.
const (
	levelMark  = '#'
	levelBytes = 1 + 27
)

// LevelOf is the token of a level of an owner.
func LevelOf(owner, unique Token) Token { return owner + Token(levelMark) + unique }

// OwnerOf is the owner of a level; "" if the token is not a level's.
func OwnerOf(t Token) Token {
	if at := len(t) - levelBytes; at > 0 && t[at] == levelMark {
		return t[:at]
	}
	return ""
}

// ShortHash is the form in which a token may be shown. A token proves ownership and is a
// secret; eight hex digits of its hash only tell two tokens apart.
func (t Token) ShortHash() string {
	sum := sha256.Sum256([]byte(t))
	return hex.EncodeToString(sum[:4])
}
