// numkeys key [key …]: the key arguments of commands on several keys.

package arg

import (
	"fmt"

	"redlockd/redlock"
)

// maxKeys of one command: one script a master reads all of them at once.
const MaxKeys = 64

// ParseKeys reads the number of keys and the keys. Naming one twice is refused,
// because it is a mistake more often than it is meant.
func ParseKeys(words *Words) ([]redlock.Key, error) {
	n, err := Bounds{Min: 1, Max: MaxKeys}.Parse("numkeys", words.Next())
	if err != nil {
		return nil, err
	}
	if left := len(words.words) - words.at; int(n) > left {
		return nil, fmt.Errorf("numkeys is %d, but %d arguments follow it", n, left)
	}
	keys := make([]redlock.Key, 0, n)
	seen := make(map[redlock.Key]bool, n)
	for range n {
		key, err := ParseKey(words.Next())
		if err != nil {
			return nil, err
		}
		if seen[key] {
			return nil, fmt.Errorf("key %s is given twice", Quoted(string(key)))
		}
		seen[key] = true
		keys = append(keys, key)
	}
	return keys, nil
}

// NoMore refuses words behind the last argument.
func NoMore(words *Words) error {
	if words.More() {
		return fmt.Errorf("unexpected argument %s behind the keys: numkeys must be their number", Quoted(words.Next()))
	}
	return nil
}
