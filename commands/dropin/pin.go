// The option --script-class, by which an operator declares what a script does. It serves
// scripts outside of the language, and scripts that redlockd must treat as another class.

package dropin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const pinSyntax = "<sha1>=<class>[,token=n[+n…]][,former=n][,time=n<unit>][,keys=n][,args=n][,yes=answer[|answer…]][,no=answer[|answer…]]"

// parsePin reads the value of --script-class: a SHA1, and what the script of that SHA1
// does to its keys. The client gets the first answer of yes or of no. An acquire may give each key
// its own token.
//
// By default the token is argument 1, and an acquire or an extension takes ms from
// argument 2. yes and no are OK and nil for an acquire, and 1 and 0 for all others. Units
// are ms, s, ms@ and s@ (points in time).
func parsePin(value string) (id sum, c *Class, err error) {
	sha, spec, ok := strings.Cut(value, "=")
	id, isSHA := parseSHA(sha)
	if !ok || !isSHA {
		return id, nil, fmt.Errorf("script-class '%s' does not begin with 40 hex digits and '='; it is written %s", value, pinSyntax)
	}
	words := strings.Split(spec, ",")
	op := Op(slices.Index(opNames, words[0]))
	if words[0] == "" || op > Discard {
		return id, nil, fmt.Errorf("script-class '%s': '%s' is no class, allowed are %s", value, words[0], strings.Join(opNames[1:], ", "))
	}
	c = pinned(op)
	yes, no := "1", "0"
	if op == Acquire || op == Reacquire || op == Overwrite {
		yes, no = "OK", "nil"
	}
	for _, word := range words[1:] {
		name, v, _ := strings.Cut(word, "=")
		switch name {
		case "yes":
			yes = v
		case "no":
			no = v
		default:
			if err := c.setOption(name, v); err != nil {
				return id, nil, fmt.Errorf("script-class '%s': %w", value, err)
			}
		}
	}
	if c.Args == 0 {
		c.Args = max(c.Token, c.Time.Arg, c.Former)
	}
	if c.Former > 0 && op != Acquire {
		return id, nil, fmt.Errorf("script-class '%s': a former token is replaced by an acquire alone", value)
	}
	if max(c.Token, c.Time.Arg, c.Former) > c.Args {
		return id, nil, fmt.Errorf("script-class '%s': the token or the time is beyond the last of %d arguments", value, c.Args)
	}
	if len(c.Tokens) > 0 && (len(c.Tokens) != c.Keys || op != Acquire || slices.Max(c.Tokens) > c.Args) {
		return id, nil, fmt.Errorf("script-class '%s': %d tokens are named, allowed are one, or for an acquire one of %d arguments for each of %d keys", value, len(c.Tokens), c.Args, c.Keys)
	}
	for _, answer := range strings.Split(yes, "|") {
		if slices.Contains(strings.Split(no, "|"), answer) && op != Read {
			return id, nil, fmt.Errorf("script-class '%s': yes and no are the same answer '%s'", value, answer)
		}
	}
	c.setAnswers(strings.Split(yes, "|"), strings.Split(no, "|"))
	return id, c, nil
}

func pinned(op Op) *Class {
	c := &Class{Op: op, By: ByPin, Keys: 1}
	if op != Discard && op != Read {
		c.Token = 1
	}
	if op != Discard && op != Read && op != Release {
		c.Time = Time{Arg: 2, Unit: Milliseconds}
	}
	return c
}

func (c *Class) setOption(name, value string) error {
	if name == "token" && strings.Contains(value, "+") {
		return c.pinTokens(value)
	}
	number, unit := value, Milliseconds
	if name == "time" {
		digits := strings.TrimRight(value, "ms@")
		if u, ok := timeUnits[value[len(digits):]]; ok {
			number, unit = digits, u
		}
		if value == "none" {
			number = "0"
		}
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n > maxArgs {
		return fmt.Errorf("'%s=%s' is not a number from 0 to %d", name, value, maxArgs)
	}
	switch name {
	case "token":
		c.Token = n
	case "time":
		if c.Time = (Time{}); n > 0 {
			c.Time = Time{Arg: n, Unit: unit}
		}
	case "former":
		c.Former = n
	case "keys":
		c.Keys = n
	case "args":
		c.Args = n
	default:
		return fmt.Errorf("'%s' is unknown; it is written %s", name, pinSyntax)
	}
	return nil
}

// pinTokens reads an argument for each key.
func (c *Class) pinTokens(value string) error {
	for _, word := range strings.Split(value, "+") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > maxArgs {
			return fmt.Errorf("'token=%s': '%s' is not a number from 1 to %d", value, word, maxArgs)
		}
		c.Tokens = append(c.Tokens, n)
	}
	c.Token = c.Tokens[0]
	return nil
}

// setAnswers gives every key state the first answer for yes or the first for no.
func (c *Class) setAnswers(yes, no []string) {
	does := map[Op][tableStates]bool{
		Acquire: {true, false, false, false}, Reacquire: {true, true, false, true},
		Release: {false, true, false, true}, Extend: {false, true, false, true}, ExtendAdd: {false, true, false, false},
		Read: {false, true, true, true}, Overwrite: {true, true, true, true}, Discard: {false, true, true, true},
	}[c.Op]
	for h := range tableStates {
		word := no[0]
		if does[h] {
			word = yes[0]
		}
		if strings.HasPrefix(word, "[") { // blanks separate the values of the option
			word = strings.ReplaceAll(word, ";", " ")
		}
		c.outcomes = append(c.outcomes, outcome{reply: parseAnswer(word), done: does[h] && c.Op != Read})
	}
	c.complete()
}
