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

// A token is 160 bits in tokenLength characters, safe in URLs and shells.
type tokenBytes [20]byte

const tokenLength = 27

func (b *tokenBytes) token() Token { return Token(base64.RawURLEncoding.EncodeToString(b[:])) }

// NewToken is 160 random bits.
func NewToken() Token {
	var b tokenBytes
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return b.token()
}

// TokensOf makes the tokens that a daemon generates: a mark of its name, so that other daemons can show
// which one granted a lock, and 136 random bits.
func TokensOf(daemon string) func() Token {
	mark := markOf(daemon)
	return func() Token {
		var b tokenBytes
		_, _ = rand.Read(b[copy(b[:], mark[:]):])
		return b.token()
	}
}

// GrantedBy reports whether a token has the form and the mark of those that a daemon generates. That is
// for people and proves nothing: a client may choose such a token.
func (t Token) GrantedBy(daemon string) bool {
	if OwnerOf(t) != "" {
		t = t[len(t)-tokenLength:]
	}
	b, err := base64.RawURLEncoding.DecodeString(string(t))
	return err == nil && len(t) == tokenLength && [markBytes]byte(b) == markOf(daemon)
}

const markBytes = 3

func markOf(daemon string) [markBytes]byte {
	sum := sha256.Sum256([]byte(daemon))
	return [markBytes]byte(sum[:])
}

// Tokens of the levels of a reentrant lock have the form owner + "#" + a token of NewToken. The
// scripts parse it, too (shape.lua): levels of one owner hold a key together, and nothing else
// does beside them.
const (
	levelMark  = '#'
	levelBytes = 1 + tokenLength
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
