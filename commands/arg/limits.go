// Limits of names, tokens, notes and numbers. Every limit is checked before anything is
// allocated or sent. A refusal states the value, what is allowed and, where an operator
// can change it, the option.

package arg

import (
	"fmt"
	"time"
)

const (
	maxKeyBytes  = 512
	maxMetaBytes = 512
	// maxResultBytes bounds what each master keeps of done work.
	maxResultBytes = 1024

	// A token shorter than 8 bytes is too easily chosen twice.
	minTokenBytes = 8
	MaxTokenBytes = 512

	// Below 10 ms nothing would be left after a round trip and the drift allowance.
	MinTTL = 10 * time.Millisecond

	// MaxKeys of one command: one script a master reads all of them at once.
	MaxKeys = 64
)

// Bounds are the ends of a range, both allowed.
type Bounds struct {
	Min, Max int64
	unit     string // " ms", "" for plain numbers
	option   string // "--max-ttl" if it decides the upper end, else ""
}

// Milliseconds are the bounds of a time.
func Milliseconds(least, most time.Duration, option string) Bounds {
	return Bounds{least.Milliseconds(), most.Milliseconds(), " ms", option}
}

// timeHint completes the error for a time with a unit, or with the word that SET has before it.
func timeHint(s string) string {
	d, err := time.ParseDuration(s)
	switch {
	case err == nil && d >= time.Millisecond:
		return fmt.Sprintf("; times are milliseconds: %d, not %s", d.Milliseconds(), Quoted(s))
	case IsWord(s, "PX"), IsWord(s, "EX"):
		return "; the time stands without " + s + ", in milliseconds"
	}
	return ""
}

func (b Bounds) String() string {
	text := fmt.Sprintf("%d to %d%s", b.Min, b.Max, b.unit)
	if b.option != "" {
		text += " (" + b.option + ")"
	}
	return text
}
