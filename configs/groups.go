package configs

// groups.go contains the [[group]] tables of the file: several groups of masters, each of which
// has the locks of some slots. They exist in the file alone.

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"redlockd/redlock/slots"
)

// Group is one of several groups of masters.
type Group struct {
	Name       string
	Masters    []Master
	Slots      slots.Ranges
	groupTable // where it is in the file
}

// groupTable is a [[group]] table of a file; the zero value is one of no file.
type groupTable struct {
	path  string
	lines map[string]int // see keyLines
	head  string         // of the table's keys there
}

// line is that of a key, or of the table.
func (t *groupTable) line(key string) int {
	return cmp.Or(t.lines[t.head+key], t.lines[t.head], t.lines["group"])
}

// maxGroups is as many as the cursor of DLOCKS can name.
const maxGroups = 128

// Each returns the settings of each group of masters: these, or with [[group]] tables one for
// each of them, or for the one that the option group names.
func (c Config) Each() (all []Config) {
	if len(c.Groups) == 0 {
		return []Config{c}
	}
	for _, g := range c.Groups {
		if c.Group != "" && c.Group != g.Name {
			continue
		}
		one := c
		one.Groups, one.Group, one.Masters = nil, g.Name, g.Masters
		if one.Slots = g.Slots.String(); g.Slots.Len() == slots.Count {
			one.Slots = "" // as a group that is the only one
		}
		all = append(all, one)
	}
	return all
}

// allMasters are those of all groups.
func (c *Config) allMasters() []Master {
	all := slices.Clone(c.Masters)
	for _, g := range c.Groups {
		all = append(all, g.Masters...)
	}
	return all
}

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

// groupTables returns the tables [[group]] of a file; ok is false if group is the option.
func groupTables(native any) (tables []map[string]any, ok bool) {
	array, _ := native.([]any)
	for _, one := range array {
		table, isTable := one.(map[string]any)
		if !isTable {
			return nil, false
		}
		tables = append(tables, table)
	}
	return tables, len(tables) > 0
}

// readGroups reads the tables of a file. What they are together is checked if each of them is
// readable.
func (l *loader) readGroups(path string, lines map[string]int, tables []map[string]any) {
	var groups []Group
	before := len(l.problems)
	for i, values := range tables {
		name, _ := values["name"].(string)
		g := Group{Name: name, groupTable: groupTable{path, lines, fmt.Sprintf("group.%d.", i+1)}}
		about := func(key string, e FieldError) {
			e.Field, e.Source, e.Line = fmt.Sprintf("%s of [[group]] %d", key, i+1), path, g.line(key)
			l.refuse(e)
		}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			switch {
			case slices.Contains(groupKeys, key):
			case slices.Contains(l.names, key):
				about(key, FieldError{Problem: "is no setting of a group", Advice: "write it before the first [[group]]: what follows that line belongs to the group"})
			default:
				about(shownName(key), FieldError{Problem: "is no setting of a group", Advice: "the nearest one is " + nearest(key, groupKeys)})
			}
		}
		var err error
		if g.Masters, err = tableMasters(values["masters"]); err != nil {
			for _, e := range errorsOf(err) {
				about("masters", fieldError(e))
			}
		}
		ranges, _ := values["slots"].(string)
		if g.Slots, err = slots.Parse(ranges); err != nil {
			about("slots", FieldError{Problem: err.Error(), Advice: `write for example slots = "0-8191"`})
		}
		groups = append(groups, g)
	}
	if len(l.problems) == before {
		l.config.Groups = groups
	}
}

var groupKeys = []string{"name", "masters", "slots"}

// tableMasters reads masters as the option of that name.
func tableMasters(native any) ([]Master, error) {
	if native == nil {
		return nil, nil // checkGroups refuses it
	}
	var c Config
	o := option{value: masterList(&c)}
	text, err := o.fromTOML(native)
	if err == nil {
		err = o.set(text)
	}
	return c.Masters, err
}

func errorsOf(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// applyGroups puts the tables in the place of the options that they replace.
func (l *loader) applyGroups() {
	if len(l.config.Groups) == 0 {
		return
	}
	for _, name := range []string{"masters", "masters-file", "embedded"} {
		if g := l.found[name]; g.source != "" {
			l.refuse(FieldError{Field: name, Source: g.source, Line: g.line, Problem: "cannot be combined with [[group]] tables in " + l.found["config"].text,
				Advice: "leave it out; the masters of several groups are named in the file alone"})
		}
	}
	l.config.Masters, l.config.Embedded = nil, 0
	if l.found["group"].source == "" {
		l.config.Group = ""
	}
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
