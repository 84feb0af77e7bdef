// The roles of the arguments: token, time, database, number or a word to compare with.

package dropin

import (
	"errors"
	"fmt"
	"slices"
)

// roles finds the role of each argument. No argument may have two roles.
func (v *classifier) roles(c *Class) error {
	role := make(map[int]string)
	take := func(arg int, as string) error {
		if before := role[arg]; before != "" && before != as {
			return fmt.Errorf("it takes argument %d both for %s and for %s", arg+1, before, as)
		}
		role[arg] = as
		return nil
	}
	var err error
	name := func(arg int, as string) {
		if err == nil {
			err = take(arg, as)
		}
	}
	if err := v.tokenRoles(c, name); err != nil {
		return err
	}
	if v.time.Arg > 0 {
		name(v.time.Arg-1, "a time")
	}
	if v.threshold != nil && v.threshold.arg >= 0 {
		name(v.threshold.arg, "the least time that must be left")
	}
	for arg := range v.given {
		name(arg, "a word to compare with")
		c.Given = append(c.Given, Given{Arg: arg + 1, Value: v.call.Args[arg]})
	}
	if v.db >= 0 {
		name(v.db, "a database")
	}
	for arg := range v.numbers {
		if role[arg] == "the token" {
			name(arg, "a number")
		}
		if arg != c.Time.Arg-1 {
			c.Numbers = append(c.Numbers, arg+1)
		}
	}
	slices.Sort(c.Numbers)
	slices.SortFunc(c.Given, func(a, b Given) int { return a.Arg - b.Arg })
	return err
}

// tokenRoles finds the tokens: one token for all locks, or one for each lock that the script
// takes.
func (v *classifier) tokenRoles(c *Class, name func(arg int, as string)) error {
	var tokens []int
	for _, i := range v.locks {
		tokens = append(tokens, v.tokens[i]+1)
		if v.tokens[i] >= 0 {
			name(v.tokens[i], "the token")
		}
	}
	if len(tokens) == 0 {
		return nil
	}
	c.Token = tokens[0]
	if !slices.ContainsFunc(tokens, func(t int) bool { return t != tokens[0] }) {
		return nil
	}
	if c.Op != Acquire || slices.Contains(tokens, 0) {
		return errors.New("its keys have different tokens, which only a script that takes free keys may give them")
	}
	c.Tokens = tokens
	return nil
}
