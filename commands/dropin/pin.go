// How does an operator say what a script does? By --script-class, for a script
// that the probes do not recognise, or recognise as something else.
package dropin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const pinSyntax = "<sha1>=<class>[,token=n][,time=n<unit>][,keys=n][,args=n][,yes=answer][,no=answer]"

// ParsePin reads the value of --script-class: a SHA1, and what the script of
// that SHA1 does to its one key. Left out, the token is argument 1; an acquire
// or an extension takes ms from argument 2; yes and no are OK and nil for an
// acquire and 1 and 0 for the rest. Units are ms, s, ms@ and s@ (points in time).
func ParsePin(value string) (sha string, c *Class, err error) {
	sha, spec, ok := strings.Cut(value, "=")
	if _, isSHA := parseSHA(sha); !ok || !isSHA {
		return "", nil, fmt.Errorf("script-class '%s' does not begin with 40 hex digits and '='; it is written %s", value, pinSyntax)
	}
	words := strings.Split(spec, ",")
	op := Op(slices.Index(opNames, words[0]))
	if words[0] == "" || op > Discard {
		return "", nil, fmt.Errorf("script-class '%s': '%s' is no class, allowed are %s", value, words[0], strings.Join(opNames[1:], ", "))
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
			if err := c.pin(name, v); err != nil {
				return "", nil, fmt.Errorf("script-class '%s': %w", value, err)
			}
		}
	}
	if c.Args == 0 {
		c.Args = max(c.Token, c.Time.Arg)
	}
	if max(c.Token, c.Time.Arg) > c.Args {
		return "", nil, fmt.Errorf("script-class '%s': the token or the time is beyond the last of %d arguments", value, c.Args)
	}
	if yes == no && op != Read {
		return "", nil, fmt.Errorf("script-class '%s': yes and no are the same answer '%s'", value, yes)
	}
	c.answers(yes, no)
	return strings.ToLower(sha), c, nil
}

func pinned(op Op) *Class {
	c := &Class{Op: op, Keys: 1, pinned: true}
	if op != Discard && op != Read {
		c.Token = 1
	}
	if op != Discard && op != Read && op != Release {
		c.Time = Time{Arg: 2, Unit: Milliseconds}
	}
	return c
}

func (c *Class) pin(name, value string) error {
	unit := Milliseconds
	number := value
	if name == "time" {
		if value == "none" {
			c.Time = Time{}
			return nil
		}
		for suffix, u := range map[string]Unit{"ms": Milliseconds, "s": Seconds, "ms@": UnixMilliseconds, "s@": UnixSeconds} {
			digits := strings.TrimSuffix(value, suffix)
			if _, err := strconv.Atoi(digits); err == nil && digits != value {
				number, unit = digits, u
			}
		}
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n > mostArgs {
		return fmt.Errorf("'%s=%s' is not a number from 0 to %d", name, value, mostArgs)
	}
	switch name {
	case "token":
		c.Token = n
	case "time":
		c.Time = Time{Arg: n, Unit: unit}
		if n == 0 {
			c.Time = Time{}
		}
	case "keys":
		c.Keys = n
	case "args":
		c.Args = n
	default:
		return fmt.Errorf("'%s' is unknown; it is written %s", name, pinSyntax)
	}
	return nil
}

// answers gives every holding one of two answers.
func (c *Class) answers(yes, no string) {
	does := map[Op][holdings]bool{
		Acquire: {true, false, false, false}, Reacquire: {true, true, false, true},
		Release: {false, true, false, true}, Extend: {false, true, false, true}, ExtendAdd: {false, true, false, false},
		Read: {false, true, true, true}, Overwrite: {true, true, true, true}, Discard: {false, true, true, true},
	}[c.Op]
	for h := range c.cases {
		word := no
		if does[h] {
			word = yes
		}
		c.cases[h] = outcome{reply: parseShape(word), done: does[h]}
	}
}
