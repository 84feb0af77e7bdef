// numkeys key [key …]: the key arguments of commands on several keys.

package commands

import (
	"fmt"

	"redlockd/redlock"
)

// maxKeys of one command: one script a master reads all of them at once.
const maxKeys = 64

// parseKeys reads the number of keys and the keys. Naming one twice is refused,
// because it is a mistake more often than it is meant.
func parseKeys(words *arguments) ([]redlock.Key, error) {
	n, err := bounds{min: 1, max: maxKeys}.parse("numkeys", words.next())
	if err != nil {
		return nil, err
	}
	if left := len(words.words) - words.at; int(n) > left {
		return nil, fmt.Errorf("numkeys is %d, but %d arguments follow it", n, left)
	}
	keys := make([]redlock.Key, 0, n)
	seen := make(map[redlock.Key]bool, n)
	for range n {
		key, err := parseKey(words.next())
		if err != nil {
			return nil, err
		}
		if seen[key] {
			return nil, fmt.Errorf("key %s is given twice", quoted(string(key)))
		}
		seen[key] = true
		keys = append(keys, key)
	}
	return keys, nil
}

// noMore refuses words behind the last argument.
func noMore(words *arguments) error {
	if words.more() {
		return fmt.Errorf("unexpected argument %s behind the keys: numkeys must be their number", quoted(words.next()))
	}
	return nil
}
