// The scripts that are known by their SHA1 alone. Nothing is evaluated for them, and EVALSHA
// needs no text.

package dropin

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// knownText is the table of known scripts. Its first lines explain its columns.
//
//go:embed known.txt
var knownText string

// knownScript is one row of the table.
type knownScript struct {
	sha     string
	library string
	purpose string
	op      Op
	keys    int
	anyKeys bool   // any number of keys
	args    string // one word each
	answers string // for the states of the table, and for a lease with too little time left
}

var knownScripts = sync.OnceValue(func() (rows []knownScript) {
	for line := range strings.Lines(knownText) {
		columns := strings.Split(strings.TrimSpace(line), "; ")
		if len(columns) != 7 || strings.HasPrefix(line, "#") {
			continue
		}
		count, anyKeys := strings.CutSuffix(columns[4], "+")
		keys, _ := strconv.Atoi(count)
		rows = append(rows, knownScript{
			sha: columns[0], library: columns[1], purpose: columns[2], op: Op(slices.Index(opNames, columns[3])),
			keys: keys, anyKeys: anyKeys, args: columns[5], answers: columns[6],
		})
	}
	return rows
})

// sum is a SHA1 in its short form.
type sum [sha1.Size]byte

// known is built once, for the first script.
var known = sync.OnceValue(func() map[sum]*Class {
	table := make(map[sum]*Class)
	for _, row := range knownScripts() {
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

func (s sum) String() string { return hex.EncodeToString(s[:]) }

// shaOf is the SHA1 of a text, as EVALSHA uses it.
func shaOf(text string) sum { return sha1.Sum([]byte(text)) }

func (k knownScript) class() *Class {
	words := strings.Fields(k.args)
	c := &Class{Op: k.op, By: BySHA, Library: k.library, Keys: k.keys, Args: len(words), anyKeys: k.anyKeys}
	for i, word := range words {
		c.setRole(word, i+1)
	}
	switch k.keys {
	case 0:
		c.Pattern = "lock:*"
	case 2:
		c.Others = []int{2}
	}
	for answer := range strings.SplitSeq(k.answers, "|") {
		word, done := strings.CutSuffix(answer, "!")
		c.outcomes = append(c.outcomes, outcome{reply: parseAnswer(word), done: done})
	}
	switch c.Op {
	case Release:
		c.Time = Time{} // the library passes it to all its scripts; this one ignores it
	case Discard:
		c.Token = 0 // the script gets the token and does not compare it
	}
	c.complete()
	return c
}

func (c *Class) setRole(word string, arg int) {
	switch word {
	case "token":
		c.Token = arg
	case "ms", "s", "ms@":
		c.Time = Time{Arg: arg, Unit: timeUnits[word]}
	case "former":
		c.Former = arg
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

// complete derives the rest of a class that has an outcome for each state of the table.
func (c *Class) complete() {
	c.Typed = c.Op != Acquire && c.Op != Overwrite && c.Op != Discard
	c.EndlessToo = c.outcomes[NoExpiry].done
	c.Looks = c.looksByOp() || len(c.outcomes) > int(tableStates)
	var refusals []luaValue
	for _, o := range c.outcomes {
		if !o.done {
			refusals = append(refusals, o.reply)
		}
	}
	c.refusal = onlyOne(refusals)
}
