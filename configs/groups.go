package configs

// groups.go contains the [[group]] tables of the file: several groups of masters, each of which
// has the locks of some slots. They exist in the file alone.

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"redlockd/redlock/slots"
)

// maxGroups is as many as the cursor of DLOCKS can name.
const maxGroups = 128

// groupName is the option group: a name, or one of the tables.
func groupName(c *Config) value {
	v := text(&c.Group, "NAME", wordAllowed)
	v.show = func() string {
		if len(c.Groups) == 0 {
			return c.Group
		}
		var parts []string
		for _, g := range c.Groups {
			parts = append(parts, g.Name+"="+g.Slots.String())
		}
		return strings.Join(parts, " ")
	}
	return v.checked(func(c *Config) error {
		if len(c.Groups) == 0 {
			return refuse(!wordPattern.MatchString(c.Group), "is not a name")
		}
		return about(strconv.Quote(c.Group), refuse(c.Group != "" && len(c.Each()) == 0, "is none of the groups of the file", "name one of "+strings.Join(c.groupNames(), ", ")))
	})
}

func (c *Config) groupNames() (names []string) {
	for _, g := range c.Groups {
		names = append(names, g.Name)
	}
	return names
}

// checkGroups checks the tables, alone and together.
func checkGroups(c *Config) []error {
	var problems []error
	refuse := func(g Group, key string, err error) {
		for _, one := range errorsOf(err) {
			e := fieldError(one)
			e.Field, e.Source, e.Line = "[[group]] "+shownName(g.Name), g.path, g.line(key)
			problems = append(problems, &e)
		}
	}
	names, owners, of := map[string]bool{}, []slots.Owner(nil), map[string]string{}
	for _, g := range c.Groups {
		switch one := (Config{Masters: g.Masters}); {
		case !wordPattern.MatchString(g.Name):
			refuse(g, "name", errors.New("has no name, or one that is not "+wordAllowed))
		case names[g.Name]:
			refuse(g, "name", errors.New("has the name of another one: give each group a name of its own"))
		case len(g.Masters) == 0:
			refuse(g, "masters", errors.New(`has no masters: write for example masters = ["a=10.0.0.1:6379", "b=10.0.0.2:6379", "c=10.0.0.3:6379"]`))
		default:
			if err := checkMasters(&one); err != nil {
				refuse(g, "masters", err)
			}
		}
		names[g.Name] = true
		owner := slots.Owner{Name: g.Name, Slots: g.Slots}
		if line := g.line("slots"); line > 0 {
			owner.Name += fmt.Sprintf(" (line %d)", line)
		}
		owners = append(owners, owner)
		for _, m := range g.Masters {
			for _, mark := range []string{"name " + m.Name, "address " + canonicalAddress(m)} {
				if other, taken := of[mark]; taken && other != g.Name {
					refuse(g, "masters", fmt.Errorf("master %s has the %s, as one of group %s has: a master belongs to one group, and names differ over all groups", m, mark, other))
				}
				of[mark] = g.Name
			}
		}
	}
	if len(c.Groups) > maxGroups {
		refuse(c.Groups[maxGroups], "", fmt.Errorf("is one of %d groups, %d are allowed", len(c.Groups), maxGroups))
	}
	if _, err := slots.NewTable(owners); err != nil && len(c.Groups) > 0 {
		first := &c.Groups[0]
		for _, one := range errorsOf(err) {
			problems = append(problems, &FieldError{Field: "[[group]]", Source: first.path, Line: first.line(""), Problem: one.Error(), Advice: fmt.Sprintf("give each slot of 0-%d to exactly one group", slots.Count-1)})
		}
	}
	return problems
}
