package lease

import "redlockd/pool"

// Kind is how many clients may hold a key at a time, and which of them together.
type Kind uint8

const (
	Exclusive Kind = iota // one holder
	Shared                // readers together, or one exclusive holder
	Permits               // at most so many holders
)

// Word is the kind for people. Levels of a reentrant lock are Shared.
func (k Kind) Word(reentrant bool) string {
	switch {
	case reentrant:
		return "reentrant"
	case k == Shared:
		return "shared"
	case k == Permits:
		return "permits"
	}
	return "exclusive"
}

// heldCopy is how a master reports that the token holds the key. Copies of two kinds do not add
// up: a master on which the token is still the reader admits other readers, whatever the token
// is on the others.
type heldCopy struct {
	held   bool
	kind   Kind
	detail [2]int64 // that the kind has beside
}

// heldKinds are the ways in which masters hold keys.
type heldKinds interface {
	// readCopy reads how a master reports that the token holds the key.
	readCopy(r pool.Reply) heldCopy
	// writeCopy writes the command that makes such a copy again, unless that is a plain SET.
	writeCopy(agreed heldCopy, c *pool.Command, keys []string, token, end string) bool
}
