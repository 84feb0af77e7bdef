package events

import (
	"cmp"
	"strconv"
	"time"

	"redlockd/redlock/engine"
)

// Kind names what happened to a lock.
type Kind uint8

const (
	Acquired  Kind = iota + 1 // granted, or granted again to the same token
	Released                  // given back
	Expired                   // not extended in time
	Lost                      // it was held for a connection, which has been notified
	Forced                    // taken away by an operator
	Extended                  // for expiry watches only: it lasts longer
	Shortened                 // for expiry watches only: its holder lets it end earlier
	Wanted                    // a client requests that its holders let go
	Overdue                   // its longest time is over, so it is not extended any more
)

var names = [...]string{"", "acquired", "released", "expired", "lost", "forced", "extended", "shortened", "wanted", "overdue"}

// Event is one thing that happened to one lock.
type Event struct {
	Kind      Kind
	Key       engine.Key
	Fence     engine.Fence // of its grant; 0 = not known
	TokenHash string       // the first 8 hex digits of the SHA-256 of its token; "" = not known
	At        time.Time    // on the masters' clock
	Meta      string       // of acquired: the text that the holder gave

	lasts time.Duration // of acquired, extended and shortened: when no copy will be left
}

// noTokenHash stands for a token hash that is not known.
const noTokenHash = "-"

// Text is the event for people and programs: its name, fence, time in ms since 1970, token hash
// and, if there is one, the holder's text, with a space between them.
func (e Event) Text() string {
	line := make([]byte, 0, 64)
	line = append(append(line, names[e.Kind]...), ' ')
	line = append(strconv.AppendInt(line, int64(e.Fence), 10), ' ')
	line = append(strconv.AppendInt(line, e.At.UnixMilli(), 10), ' ')
	line = append(line, cmp.Or(e.TokenHash, noTokenHash)...)
	if e.Meta != "" {
		line = append(append(line, ' '), e.Meta...)
	}
	return string(line)
}
