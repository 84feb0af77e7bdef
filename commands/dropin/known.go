// The scripts that are known by their SHA1 alone. Nothing is evaluated for them, and EVALSHA
// needs no text.

package dropin

import (
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
)

// knownScript is one row of the table.
type knownScript struct {
	sha     string
	library string
	purpose string
	op      Op
	keys    int
	args    string // one word each
	answers string // for the four key states, and for a lease with too little time left
}

// allOrNone are scripts of the table that take any number of keys, and whose answers do not
// depend on the number. Their texts are outside of the language.
var allOrNone = []string{
	"eb0c00d98f6f33b4262419a509002884540f30be", "5a22d7e8431313862816d4416b5e46dd70fc340d",
	"9470c810040e272ee6c579d8d4331aaf6332a7b1", "66e1084c2d842a7e8c271925aae90219fac4e129",
}

// sum is a SHA1 in its short form.
type sum [sha1.Size]byte

// known is built once, for the first script.
var known = sync.OnceValue(func() map[sum]*Class {
	table := make(map[sum]*Class, len(knownScripts))
	for _, row := range knownScripts {
		if id, ok := parseSHA(row.sha); ok {
			table[id] = row.class()
		}
	}
	return table
})

// parseSHA reads 40 hex digits of either case.
func parseSHA(sha string) (id sum, ok bool) {
	if len(sha) != 2*len(id) {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(sha))
	return id, err == nil
}

func (id sum) String() string { return hex.EncodeToString(id[:]) }

func (k knownScript) class() *Class {
	words := strings.Fields(k.args)
	c := &Class{Op: k.op, Library: k.library, Purpose: k.purpose, Keys: k.keys, Args: len(words)}
	for i, word := range words {
		c.setRole(word, i+1)
	}
	switch k.keys {
	case 0:
		c.Pattern = "lock:*"
	case 2:
		c.Signals = []int{2}
	}
	for h, answer := range strings.Split(k.answers, "|") {
		word, done := strings.CutSuffix(answer, "!")
		o := outcome{reply: parseShape(word), done: done}
		if h < int(keyStates) {
			c.cases[h] = o
		} else {
			c.mixed = append(c.mixed, o)
		}
	}
	c.anyKeys = slices.Contains(allOrNone, k.sha)
	if c.Op == Release {
		c.Time = Time{} // the library passes it to all its scripts; this one ignores it
	}
	if c.Op == Discard {
		c.Token = 0 // the script gets the token and does not compare it
	}
	if c.Op == Read {
		c.readOutcomes()
	}
	return c
}

func (c *Class) setRole(word string, arg int) {
	switch word {
	case "token":
		c.Token = arg
	case "ms":
		c.Time = Time{Arg: arg, Unit: Milliseconds}
	case "s":
		c.Time = Time{Arg: arg, Unit: Seconds}
	case "at":
		c.Time = Time{Arg: arg, Unit: UnixMilliseconds}
	case "least":
		c.Numbers = append(c.Numbers, arg)
	case "len":
		c.Prefix = arg
	case "db":
		c.DB = arg
	default:
		if value, given := strings.CutPrefix(word, "="); given {
			c.Given = append(c.Given, Given{Arg: arg, Value: value})
		}
	}
}

// shaOf is the SHA1 of a text, as EVALSHA uses it.
func shaOf(text string) sum { return sha1.Sum([]byte(text)) }
