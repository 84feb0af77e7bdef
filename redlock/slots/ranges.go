// Ranges is a set of slots, and its text: 0-8191,9000.

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

// All is every slot.
func All() Ranges { return Ranges{{0, Count - 1}} }

// String is the text that Parse reads.
func (rs Ranges) String() string {
	texts := make([]string, len(rs))
	for i, r := range rs {
		texts[i] = r.String()
	}
	return strings.Join(texts, ",")
}

// Len is how many slots these are.
func (rs Ranges) Len() (n int) {
	for _, r := range rs {
		n += r.Last - r.First + 1
	}
	return n
}

// Parse reads slots and ranges separated by commas, in any order.
func Parse(text string) (Ranges, error) {
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
func (t *Table) unowned() (missing Ranges) {
	for slot, owner := range t {
		switch last := len(missing) - 1; {
		case owner != 0:
		case last >= 0 && missing[last].Last == slot-1:
			missing[last].Last = slot
		default:
			missing = append(missing, Range{slot, slot})
		}
	}
	return missing
}

// Of is the index of the owner of a name.
func (t *Table) Of(name string) int { return int(t[Of(name)]) }
