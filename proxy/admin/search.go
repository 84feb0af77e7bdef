package admin

// search.go finds and sorts the locks that a viewer requested.

import (
	"slices"
	"strings"

	"redlockd/redlock"
)

// query is a viewer's search.
type query struct {
	search string
	order  string // one of orders
	offset int
}

// searchResult is a page of a list.
type searchResult struct {
	entries        []*cachedLock
	matches, total int // of those that the viewer may see
}

// maxOffset is how far one can page through a list; beyond, a search is quicker.
const (
	pageSize  = 50
	maxOffset = 100 * pageSize
)

// orders are the sort orders, each with the key as the last criterion.
var orders = map[string]func(a, b *cachedLock) bool{
	"key": func(a, b *cachedLock) bool { return a.key < b.key },
	"left": func(a, b *cachedLock) bool {
		return a.until.Before(b.until) || a.until.Equal(b.until) && a.key < b.key
	},
	"held": func(a, b *cachedLock) bool {
		x, _ := a.heldSince()
		y, _ := b.heldSince()
		return x.Before(y) || x.Equal(y) && a.key < b.key
	},
	"waiting": func(a, b *cachedLock) bool {
		x, y := max(a.waiters, a.queued), max(b.waiters, b.queued)
		return x > y || x == y && a.key < b.key
	},
}

// lockSet is the content of a lockCache at one moment. It never changes, so all viewers
// search the same one.
type lockSet struct {
	entries        []*cachedLock // in no order
	complete, full bool
}

// find searches the keys that pass the viewer's key filter.
func (l lockSet) find(q query, keyFilter func(redlock.Key) bool) searchResult {
	first := newTopLocks(q.offset+pageSize, orders[q.order])
	pieces := splitPattern(q.search)
	var f searchResult
	for _, e := range l.entries {
		if !keyFilter(e.key) {
			continue
		}
		f.total++
		if matches(string(e.key), pieces) {
			f.matches++
			first.add(e)
		}
	}
	f.entries = first.sorted[min(q.offset, len(first.sorted)):]
	return f
}

// splitPattern splits a search at its stars. A search without any matches anywhere in a
// name; case never matters.
func splitPattern(search string) []string {
	if search != "" && !strings.Contains(search, "*") {
		search = "*" + search + "*"
	}
	return strings.Split(strings.ToLower(search), "*")
}

// matches reports whether a name has the pieces in this order, the first at its
// beginning and the last at its end.
func matches(name string, pieces []string) bool {
	last := len(pieces) - 1
	if last == 0 { // no search
		return true
	}
	name = strings.ToLower(name)
	rest, ok := strings.CutPrefix(name, pieces[0])
	if !ok {
		return false
	}
	for _, piece := range pieces[1:last] {
		at := strings.Index(rest, piece)
		if at < 0 {
			return false
		}
		rest = rest[at+len(piece):]
	}
	return strings.HasSuffix(rest, pieces[last])
}

// topLocks keeps the first few of many entries, without sorting the rest.
type topLocks struct {
	limit  int
	before func(a, b *cachedLock) bool
	sorted []*cachedLock
}

func newTopLocks(limit int, before func(a, b *cachedLock) bool) *topLocks {
	return &topLocks{limit: limit, before: before}
}

func (f *topLocks) add(e *cachedLock) {
	if len(f.sorted) == f.limit {
		if !f.before(e, f.sorted[f.limit-1]) {
			return
		}
		f.sorted = f.sorted[:f.limit-1]
	}
	at, _ := slices.BinarySearchFunc(f.sorted, e, func(a, b *cachedLock) int {
		if f.before(a, b) {
			return -1
		}
		return 1
	})
	f.sorted = slices.Insert(f.sorted, at, e)
}
