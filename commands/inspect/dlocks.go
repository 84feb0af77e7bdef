// DLOCKS cursor [MATCH pattern] [COUNT n]: one step of a walk over the locks.

package inspect

import (
	"fmt"
	"math"
	"strconv"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/commands/glob"
	"redlockd/redlock"
)

const (
	defaultCount = 100
	// maxCount bounds one answer; the engine reads fewer at once.
	maxCount = 1000
	// stepWeight: a step with 100 locks takes the masters 1.4 ms (1 µs a key to find it, 6 µs on
	// each of two masters to inspect it), and a lock of three masters 12 µs of theirs.
	stepWeight = 100
)

// dlocks answers [cursor, [key, mode, holders, ttl, …]]. A lock whose holder cannot
// be decided has the mode "undecided".
func (h *handlers) dlocks(c *commands.Call) error {
	listing, err := h.listing(c)
	if err != nil {
		return err
	}
	h.deps.Inspect.ListLocks(listing, commands.Answer(c, pageReply))
	return nil
}

func pageReply(page redlock.LockPage) commands.Reply {
	items := make([]commands.Reply, 0, 4*len(page.Locks))
	for i := range page.Locks {
		one := &page.Locks[i]
		mode := one.View.ModeWord()
		if one.View.State == redlock.LockUndecided {
			mode = stateWords[redlock.LockUndecided]
		}
		items = append(items, commands.Bulk(string(one.Key)), commands.Bulk(mode), commands.Int(int64(one.View.Count)), commands.Int(one.View.Left.Milliseconds()))
	}
	return commands.Array(commands.Bulk(strconv.FormatUint(page.Cursor, 10)), commands.Array(items...))
}

func (h *handlers) listing(c *commands.Call) (redlock.Listing, error) {
	words := c.Words()
	r := redlock.Listing{DB: c.Client.DB, Client: c.Client.ID, Count: defaultCount}
	text := words.Next()
	cursor, ok := arg.ParseCount(text)
	if !ok {
		return r, fmt.Errorf("cursor %s is not an integer or out of range, allowed are 0 to %d, as the last DLOCKS answered", arg.Quoted(text), int64(math.MaxInt64))
	}
	r.Cursor = uint64(cursor)
	pattern := glob.Pattern{}
	for words.More() {
		switch name := words.Option(); name {
		case "MATCH":
			var err error
			value := words.Next()
			if pattern, err = glob.New(value); err != nil {
				words.Fail(fmt.Errorf("MATCH %s %w", arg.Quoted(value), err))
			}
		case "COUNT":
			r.Count = int(words.Int(name, arg.Bounds{Min: 1, Max: maxCount}))
		}
	}
	visible := c.KeyFilter()
	r.Prefix = pattern.Prefix
	r.Wanted = func(key redlock.Key) bool { return pattern.Matches(string(key)) && visible(key) }
	return r, words.Err()
}
