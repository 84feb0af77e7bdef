// Ranges is a set of slots, and its text: 0-8191,9000, or none.

package slots

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Range is the slots First … Last.
type Range struct{ First, Last int }

// String is 0-8191, or 9000 for one slot.
func (r Range) String() string {
	if r.First == r.Last {
		return strconv.Itoa(r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// Ranges are in ascending order, with a gap between every two: sets that are equal have
// equal texts.
type Ranges []Range

// none is the text of no slots: a group that is to get its first ones has none.
const none = "none"

// All is every slot.
func All() Ranges { return Ranges{{0, Count - 1}} }

// ParseOwned reads the slots of a configuration: "" is those of an only group, which has all.
func ParseOwned(text string) (Ranges, error) {
	if text == "" {
		return All(), nil
	}
	return Parse(text)
}

// String is the text that Parse reads.
func (rs Ranges) String() string {
	if len(rs) == 0 {
		return none
	}
	texts := make([]string, len(rs))
	for i, r := range rs {
		texts[i] = r.String()
	}
	return strings.Join(texts, ",")
}

// Len counts the slots.
func (rs Ranges) Len() (n int) {
	for _, r := range rs {
		n += r.Last - r.First + 1
	}
	return n
}

// Has reports whether a slot is one of these.
func (rs Ranges) Has(slot int) bool {
	return slices.ContainsFunc(rs, func(r Range) bool { return r.First <= slot && slot <= r.Last })
}

// Contains reports whether all slots of other are among these.
func (rs Ranges) Contains(other Ranges) bool { return len(other.Minus(rs)) == 0 }

// Minus are the slots that other lacks.
func (rs Ranges) Minus(other Ranges) Ranges {
	return rs.combine(other, func(here, there bool) bool { return here && !there })
}

// And are the slots of both.
func (rs Ranges) And(other Ranges) Ranges {
	return rs.combine(other, func(here, there bool) bool { return here && there })
}

// Plus are the slots of either.
func (rs Ranges) Plus(other Ranges) Ranges {
	return rs.combine(other, func(here, there bool) bool { return here || there })
}

func (rs Ranges) combine(other Ranges, keep func(here, there bool) bool) (result Ranges) {
	var here, there [Count]bool
	for _, set := range []struct {
		of Ranges
		in *[Count]bool
	}{{rs, &here}, {other, &there}} {
		for _, r := range set.of {
			for slot := r.First; slot <= r.Last; slot++ {
				set.in[slot] = true
			}
		}
	}
	return Where(func(slot int) bool { return keep(here[slot], there[slot]) })
}

// Where are the slots that a function chooses.
func Where(chosen func(slot int) bool) (result Ranges) {
	for slot := range Count {
		switch last := len(result) - 1; {
		case !chosen(slot):
		case last >= 0 && result[last].Last == slot-1:
			result[last].Last = slot
		default:
			result = append(result, Range{slot, slot})
		}
	}
	return result
}

// Parse reads slots and ranges separated by commas, in any order, or none.
func Parse(text string) (Ranges, error) {
	if strings.TrimSpace(text) == none {
		return nil, nil
	}
	var list Ranges
	for part := range strings.SplitSeq(text, ",") {
		r, err := parseRange(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("slots %q: %w", text, err)
		}
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
	merged := list[:1]
	for _, r := range list[1:] {
		last := &merged[len(merged)-1]
		switch {
		case r.First <= last.Last:
			return nil, fmt.Errorf("slots %q: %s is given twice", text, Range{r.First, min(r.Last, last.Last)})
		case r.First == last.Last+1:
			last.Last = r.Last
		default:
			merged = append(merged, r)
		}
	}
	return merged, nil
}

func parseRange(text string) (r Range, err error) {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	if r.First, err = parseSlot(first); err != nil {
		return r, err
	}
	if r.Last, err = parseSlot(last); err != nil {
		return r, err
	}
	if r.First > r.Last {
		return r, fmt.Errorf("%q ends before it begins", text)
	}
	return r, nil
}

func parseSlot(text string) (int, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 16)
	if err != nil || n >= Count {
		return 0, fmt.Errorf("%q is not a slot: give ranges of 0 to %d, such as 0-8191 or 0-99,200-300", text, Count-1)
	}
	return int(n), nil
}

// Owner is a group with its slots.
type Owner struct {
	Name  string
	Slots Ranges
}

// Table is the index of the owner of each slot.
type Table [Count]uint16

// NewTable gives every slot to its owner. Slots without one, or with two, are an error
// that names them.
func NewTable(owners []Owner) (*Table, error) {
	table, problems := new(Table), []error(nil)
	for i, o := range owners {
		for _, r := range o.Slots {
			for slot := r.First; slot <= r.Last; slot++ {
				if other := table[slot]; other != 0 {
					last := slot
					for last < r.Last && table[last+1] == other {
						last++
					}
					problems = append(problems, fmt.Errorf("slots %s belong to the groups %s and %s", Range{slot, last}, owners[other-1].Name, o.Name))
					slot = last
					continue
				}
				table[slot] = uint16(i + 1)
			}
		}
	}
	if missing := table.unowned(); len(missing) > 0 {
		problems = append(problems, fmt.Errorf("slots %s belong to no group", missing))
	}
	for slot := range table {
		table[slot]--
	}
	return table, errors.Join(problems...)
}

// unowned are the slots that are still 0.
func (t *Table) unowned() Ranges { return Where(func(slot int) bool { return t[slot] == 0 }) }
