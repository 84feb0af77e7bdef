package embedded

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// scanList is what the steps of a walk by SCAN take their keys from. miniredis ignores COUNT:
// it returns all keys at once, and the pool rejects so long a reply. So the first step lists
// the keys in the order of their hashes, and every step takes the next COUNT of them. The
// cursor is the lowest hash that is left. So a walk can go on with a later list: keys that
// come and go move no other key across a cursor.
type scanList struct {
	client  *server.Peer // the list is of its database
	options []string     // MATCH and TYPE
	keys    []scanKey
}

type scanKey struct {
	hash uint64
	name string
}

const scanBits = 31 // of a hash, as many as the cursor of DLOCKS has room for

var scanSeed = maphash.MakeSeed()

// scan answers SCAN. It leaves wrong arguments to miniredis, which reports the error.
func (t translator) scan(c *server.Peer, args []string) bool {
	cursor, err := strconv.Atoi(args[0])
	count, options := 10, []string{"SCAN", "0"}
	for option := range slices.Chunk(args[1:], 2) {
		if len(option) == 2 && strings.EqualFold(option[0], "COUNT") {
			count, _ = strconv.Atoi(option[1])
			continue
		}
		options = append(options, option...)
	}
	if err != nil || cursor < 0 || count < 1 {
		return false
	}
	list := t.list(c, options, cursor == 0)
	if list == nil {
		return false
	}
	names, next := list.page(uint64(cursor), count)
	c.WriteLen(2)
	c.WriteBulk(strconv.FormatUint(next, 10))
	c.WriteStrings(names)
	return true
}

// list is the latest list if it serves the client's walk, otherwise a new one, nil if
// miniredis reports an error. A new list takes its place before it reads the keys. Of two at
// the same time the one that began later therefore stays, which lacks no key of either walk.
func (t translator) list(c *server.Peer, options []string, first bool) *scanList {
	m, list := t.master, &scanList{client: c, options: options}
	m.mu.Lock()
	latest := m.scanned
	if !first && latest != nil && latest.client == c && slices.Equal(latest.options, options) {
		m.mu.Unlock()
		return latest
	}
	m.scanned = list
	m.mu.Unlock()
	_, rest, found := strings.Cut(t.reply(c, options...), "\r\n0\r\n*") // the cursor, then the keys
	if !found {
		return nil
	}
	_, rest, _ = strings.Cut(rest, "\r\n")
	for rest != "" {
		size, after, _ := strings.Cut(rest[1:], "\r\n")
		n, _ := strconv.Atoi(size)
		list.keys = append(list.keys, scanKey{maphash.String(scanSeed, after[:n]) >> (64 - scanBits), after[:n]})
		rest = after[n+2:]
	}
	slices.SortFunc(list.keys, func(a, b scanKey) int { return cmp.Compare(a.hash, b.hash) })
	return list
}

// page is count keys from the cursor on, all of equal hashes together, and the cursor after them.
func (l *scanList) page(cursor uint64, count int) (names []string, next uint64) {
	from, _ := slices.BinarySearchFunc(l.keys, cursor, func(k scanKey, cursor uint64) int { return cmp.Compare(k.hash, cursor) })
	for _, key := range l.keys[from:] {
		if len(names) >= count && key.hash != next {
			return names, key.hash
		}
		names, next = append(names, key.name), key.hash
	}
	return names, 0
}
