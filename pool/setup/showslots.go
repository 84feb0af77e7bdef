// ShowSlots: which group has which slots, as the masters carry it.

package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"

	"redlockd/pool"
	"redlockd/redlock/slots"
)

// RangeOf is the key of a range of a group, for rates.
func RangeOf(slotRange, group string) string { return slotRange + " " + group }

// owned is the state of slots that a group serves.
const owned = "owned"

// slotRow is a line of the table.
type slotRow struct {
	slots.Range
	side  *side
	state string
}

// ShowSlots writes a table of the slots. rates are the operations a second by RangeOf. The error is
// about groups that do not answer, or slots that have no group.
func ShowSlots(ctx context.Context, all []pool.Options, rates map[string]float64, out io.Writer) error {
	m := &slotMove{out: io.Discard}
	defer m.close()
	if err := m.connect(ctx, all); err != nil {
		return err
	}
	var errs []error
	var rows []slotRow
	rest := slots.All()
	for _, s := range m.sides {
		rest = rest.Minus(s.owned)
		state := owned
		if s.err != nil {
			errs, state = append(errs, s.err), "owned, by less than a quorum of masters"
		}
		for _, r := range s.owned {
			rows = append(rows, slotRow{r, s, state})
		}
		if len(s.owned) == 0 && s.err == nil {
			rows = append(rows, slotRow{slots.Range{First: -1}, s, "has no slots"})
		}
	}
	for _, s := range m.sides {
		state := m.frozenState(s)
		for _, r := range m.waiting(s).And(rest) {
			rows = append(rows, slotRow{r, s, state})
		}
	}
	for _, row := range rows {
		if row.First >= 0 {
			rest = rest.Minus(slots.Ranges{row.Range})
		}
	}
	slices.SortStableFunc(rows, func(a, b slotRow) int { return cmp.Compare(a.First, b.First) })
	writeSlots(rows, rates, out)
	for _, s := range m.sides {
		if own := s.group.options.Slots; s.err == nil && own != s.newest.Now.Slots {
			fmt.Fprintf(out, "group %s has the slots %s in the file: it is older; write those of the table into it\n", s.name(), orAll(own))
		}
	}
	if len(rest) > 0 && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("slots: %s are in no group: see Several groups in the runbook", rest))
	}
	return errors.Join(errs...)
}

// frozenState is the state of slots that a group has given up, and that none has yet.
func (m *slotMove) frozenState(s *side) string {
	if len(s.leaving) == 0 {
		return ""
	}
	to, age := s.newest.Now.To, s.lease()
	since, err := s.inForceSince()
	switch {
	case err != nil || !s.newest.InForce:
		return "frozen for " + to + ", the cut is not in force yet; to be finished: " + moveCommand(s.newest.Now.Leaving, to)
	case since < age:
		return fmt.Sprintf("frozen for %s, %s left", to, humanDuration(age-since))
	}
	return "frozen for " + to + ", to be finished: " + moveCommand(s.newest.Now.Leaving, to)
}

func writeSlots(rows []slotRow, rates map[string]float64, out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SLOTS\tCOUNT\tGROUP\tMAP\tSTATE\tOPERATIONS/S")
	for _, row := range rows {
		text, count, rate := "-", 0, "-"
		if row.First >= 0 {
			text, count = row.String(), row.Last-row.First+1
		}
		if n, known := rates[RangeOf(text, row.side.name())]; known {
			rate = strconv.FormatFloat(n, 'f', 0, 64)
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%d\t%s\t%s\n", text, count, row.side.name(), row.side.newest.Now.MapVersion, row.state, rate)
	}
	_ = table.Flush() // a caller that does not read the table reads the exit code
}
