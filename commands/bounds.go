// bounds is the range of an integer argument. All arguments are read here, so that
// every refusal shows the value, the range and, where an operator can change it,
// the option.

package commands

import (
	"fmt"
	"time"
)

// bounds are the ends of a range, both allowed.
type bounds struct {
	min, max int64
	unit     string // " ms", "" for plain numbers
	option   string // "--max-ttl" if it decides the upper end, else ""
}

// milliseconds are the bounds of a time.
func milliseconds(least, most time.Duration, option string) bounds {
	return bounds{least.Milliseconds(), most.Milliseconds(), " ms", option}
}

// parse reads an integer as parseCount does; what names the argument.
func (b bounds) parse(what, s string) (int64, error) {
	n, ok := parseCount(s)
	if !ok || n < b.min || n > b.max {
		return 0, fmt.Errorf("%s %s is not an integer or out of range, allowed are %s", what, quoted(s), b)
	}
	return n, nil
}

// parseTime reads milliseconds. They are compared before they become a
// time.Duration, which cannot hold all that a client may send.
func (b bounds) parseTime(what, s string) (time.Duration, error) {
	ms, err := b.parse(what, s)
	return time.Duration(ms) * time.Millisecond, err
}

func (b bounds) String() string {
	text := fmt.Sprintf("%d to %d%s", b.min, b.max, b.unit)
	if b.option != "" {
		text += " (" + b.option + ")"
	}
	return text
}
