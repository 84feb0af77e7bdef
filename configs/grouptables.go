package configs

// grouptables.go reads the [[group]] tables of a file.

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"redlockd/redlock/slots"
)

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
	for i, table := range tables {
		name, _ := table["name"].(string)
		g := Group{Name: name}
		about := func(key string, e FieldError) {
			table := fmt.Sprintf("group.%d.", i+1) // see keyLines
			e.Field, e.Source, e.Line = fmt.Sprintf("%s of [[group]] %d", key, i+1), path, cmp.Or(lines[table+key], lines[table], lines["group"])
			l.refuse(e)
		}
		for _, key := range slices.Sorted(maps.Keys(table)) {
			switch {
			case slices.Contains(groupKeys, key):
			case slices.Contains(l.names, key):
				about(key, FieldError{Problem: "is no setting of a group", Advice: "write it before the first [[group]]: what follows that line belongs to the group"})
			default:
				about(shownName(key), FieldError{Problem: "is no setting of a group", Advice: "the nearest one is " + nearest(key, groupKeys)})
			}
		}
		var err error
		if g.Masters, err = tableMasters(table["masters"]); err != nil {
			for _, e := range errorsOf(err) {
				about("masters", fieldError(e))
			}
		}
		ranges, _ := table["slots"].(string)
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
