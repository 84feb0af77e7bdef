package lease

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
