// DLOCKS cursor [MATCH pattern] [COUNT n]: one step of a walk over the locks.

package commands

import (
	"fmt"
	"math"
	"strconv"

	"redlockd/commands/glob"
	"redlockd/redlock"
)

const (
	defaultCount = 100
	// maxCount bounds one answer; the engine reads fewer at once.
	maxCount = 1000
)

// dlocks answers [cursor, [key, mode, holders, ttl, …]]. A lock whose holder cannot
// be decided has the mode "undecided".
func (t *Table) dlocks(c *Call) error {
	listing, err := t.listing(c)
	if err != nil {
		return err
	}
	t.deps.Inspect.ListLocks(listing, func(page redlock.LockPage, err error) {
		if err != nil {
			c.Reply(failure(err))
			return
		}
		items := make([]Reply, 0, 4*len(page.Locks))
		for i := range page.Locks {
			one := &page.Locks[i]
			mode := modeWords[one.View.Mode]
			if one.View.State == redlock.LockUndecided {
				mode = stateWords[redlock.LockUndecided]
			}
			items = append(items, Bulk(string(one.Key)), Bulk(mode), Int(int64(one.View.Count)), Int(one.View.Left.Milliseconds()))
		}
		c.Reply(Array(Bulk(strconv.FormatUint(page.Cursor, 10)), Array(items...)))
	})
	return nil
}

func (t *Table) listing(c *Call) (redlock.Listing, error) {
	words := c.Words()
	r := redlock.Listing{DB: c.Client.DB, Count: defaultCount}
	text := words.next()
	cursor, ok := parseCount(text)
	if !ok {
		return r, fmt.Errorf("cursor %s is not an integer or out of range, allowed are 0 to %d, as the last DLOCKS answered", quoted(text), int64(math.MaxInt64))
	}
	r.Cursor = uint64(cursor)
	pattern := glob.Pattern{}
	for words.more() {
		name, value, err := words.option()
		if err != nil {
			return r, err
		}
		switch name {
		case "MATCH":
			if pattern, err = glob.New(value); err != nil {
				return r, fmt.Errorf("MATCH %s %w", quoted(value), err)
			}
		case "COUNT":
			count, err := bounds{min: 1, max: maxCount}.parse(name, value)
			if err != nil {
				return r, err
			}
			r.Count = int(count)
		}
	}
	visible := c.KeyFilter()
	r.Prefix = pattern.Prefix
	r.Wanted = func(key redlock.Key) bool { return pattern.Matches(string(key)) && visible(key) }
	return r, nil
}
