// Moves: slots go from one group to another while the daemons serve. Nothing in them is granted
// for as long as the longest lease lasts, so no group ever has them beside another one:
//
//  1. The cut: the group that has the slots gives them up, by a change of its configuration that
//     names the group which may take them over. Every change of slots has the next version of the
//     map; of two configurations with one slot the higher version has it.
//  2. The freeze: once the cut has been in force for the longest lease, no lease of before is left.
//  3. The carry-over: counters and records of work go to the other group, and its registers rise
//     above all fences of the first one, see carry.go. Each of its masters gets them before it gets
//     the next configuration.
//  4. The switch: the next configuration of the other group has the slots.
//
// Each step can be seen on the masters, so the same command goes on where one stopped. The cut and
// the switch are changes as in rename.go: of two at once only one gets a quorum. Between them the
// slots have no group, and the cut names the only one that may take them.
//
// A cut that is over may stay in its configuration. It cannot be taken for one that waits: it has
// the version of the map at which it was made, whatever else has changed in its group, and every
// later change of these slots has a higher one, in whichever group.
//
// An operator may be late: what it has read of a cut is out of date once the slots were in the
// target, even if they came back. So it reads all groups at one time, and goes on only if the cut is
// the last change of the slots. Then it reads what they take along, and replaces the configuration
// of the target that it has read: only the target may take them, and has another one once it did.

package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"redlockd/pool"
	"redlockd/pool/clock"
	"redlockd/redlock/slots"
)

// slotMove is one run of the command.
type slotMove struct {
	ranges slots.Ranges
	sides  []*side
	target *side
	out    io.Writer
}

// MoveSlots moves slots to the group of the name to. all are the groups of the daemons. It finishes a
// move that was begun, and changes nothing where the group has the slots.
func MoveSlots(ctx context.Context, all []pool.Options, ranges slots.Ranges, to string, out io.Writer) error {
	if len(ranges) == 0 {
		return errors.New("slots: none is given; nothing was changed. Give ranges, such as 0-1000 or 0-99,200")
	}
	m := &slotMove{ranges: ranges, out: out}
	defer m.close()
	if err := m.connect(ctx, all); err != nil {
		return err
	}
	if err := m.find(to); err != nil {
		return err
	}
	if m.target.owned.Contains(m.ranges) {
		return m.finish(ctx)
	}
	source, err := m.source()
	if err != nil {
		return err
	}
	if source.owned.Contains(m.ranges) {
		if err := m.cut(ctx, source); err != nil {
			return err
		}
	} else if err := source.complete(ctx); err != nil { // of a cut that stopped half-way
		return err
	}
	return m.takeOver(ctx, source)
}

func (m *slotMove) close() {
	for _, s := range m.sides {
		closeAll(s.all)
	}
}

// connect reads what the masters of all groups carry. A group that does not answer may be one that
// the move is not about.
func (m *slotMove) connect(ctx context.Context, all []pool.Options) error {
	for _, o := range all {
		g, err := newGroup(o, stepTimeout)
		if err != nil {
			return err
		}
		s := &side{change: &change{group: g, out: m.out, what: "slots"}}
		m.sides = append(m.sides, s)
		s.err = s.look(ctx)
	}
	return ctx.Err()
}

func (m *slotMove) find(to string) error {
	var names []string
	for _, s := range m.sides {
		names = append(names, s.name())
		if s.name() == to {
			m.target = s
		}
	}
	switch {
	case len(m.sides) < 2:
		return fmt.Errorf("slots: there is one group of masters, and slots move between groups; nothing was changed. Write a [[group]] table for each group")
	case m.target == nil:
		return fmt.Errorf("slots: %q is no group; nothing was changed; allowed: %s", to, strings.Join(names, ", "))
	}
	return m.target.err
}

// source is the group that has the slots, or that has given them up for the target.
func (m *slotMove) source() (*side, error) {
	var parts []string
	rest := m.ranges
	for _, s := range m.sides {
		if part := m.ranges.And(s.owned); s.err == nil && len(part) > 0 {
			if s != m.target && s.owned.Contains(m.ranges) {
				return s, nil
			}
			parts, rest = append(parts, fmt.Sprintf("%s in group %s", part, s.name())), rest.Minus(s.owned)
		}
	}
	if len(parts) > 0 {
		if len(rest) > 0 {
			parts = append(parts, fmt.Sprintf("%s in none that answers", rest))
		}
		return nil, fmt.Errorf("slots: %s are not in one group: %s; nothing was changed. Move those of one group at a time", m.ranges, strings.Join(parts, ", "))
	}
	return m.frozen()
}

// frozen is the group that has given up the slots.
func (m *slotMove) frozen() (found *side, err error) {
	var unread error
	for _, s := range m.sides {
		switch {
		case s.err != nil:
			unread = errors.Join(unread, s.err)
		case len(s.leaving.And(m.ranges)) > 0 && (found == nil || s.newest.Now.LeftAt > found.newest.Now.LeftAt):
			found = s
		}
	}
	switch {
	case found == nil && unread != nil:
		return nil, fmt.Errorf("slots: %s are in no group that answers: %w; nothing was changed", m.ranges, unread)
	case found == nil:
		return nil, fmt.Errorf("slots: %s are in no group, and no group has given them up; nothing was changed. See Several groups in the runbook", m.ranges)
	case unread != nil && found.newest.Now.LeftAt <= m.target.newest.Now.MapVersion:
		return nil, fmt.Errorf("slots: group %s gave up %s, and a later move may be known to others alone: %w; nothing was changed. Bring them back first", found.name(), m.ranges, unread)
	case found.newest.Now.To != m.target.name() || !slices.Equal(found.leaving, m.ranges):
		return nil, m.unfinished(found)
	}
	return found, nil
}

// unfinished is the error of a command that another one has to precede.
func (m *slotMove) unfinished(s *side) error {
	return fmt.Errorf("slots: a move of %s from group %s is unfinished, and another one must not replace it; nothing was changed. A move cannot be taken back. First finish it: %s",
		s.leaving, s.name(), moveCommand(s.newest.Now.Leaving, s.newest.Now.To))
}

// waiting are the slots that a group gave up and that no other one has had since.
func (m *slotMove) waiting(s *side) slots.Ranges {
	rest := s.leaving
	for _, other := range m.sides {
		if other.err != nil || len(rest) == 0 {
			continue // what it was read to have may be old
		}
		rest = rest.Minus(other.settled())
		if other.newest.Now.LeftAt > s.newest.Now.LeftAt {
			rest = rest.Minus(other.leaving)
		}
	}
	return rest
}

// nextVersion is above those of all maps.
func (m *slotMove) nextVersion() int64 {
	next := int64(1)
	for _, s := range m.sides {
		if s.newest.Now != nil {
			next = max(next, s.newest.Now.MapVersion+1)
		}
	}
	return next
}

// ownedText writes the slots that a group has in a configuration.
func ownedText(owned slots.Ranges) string {
	if owned.Len() == slots.Count {
		return "" // as a group that is the only one
	}
	return owned.String()
}

// finish completes the move of slots that the target has, or is about to have.
func (m *slotMove) finish(ctx context.Context) error {
	t := m.target
	if t.newest.InForce {
		if t.newest.Former != nil {
			t.resume()
			return t.run(ctx)
		}
		fmt.Fprintf(m.out, "slots %s are in group %s in force already; nothing was changed\n", m.ranges, t.name())
		return nil
	}
	gained := t.gained()
	if t.newest.Former == nil || len(gained) == 0 {
		return t.unfinishedChange()
	}
	m.ranges = gained
	former, err := slots.ParseOwned(t.newest.Former.Slots)
	if err != nil {
		return err
	}
	t.owned = former
	source, err := m.frozen()
	if err != nil {
		return err
	}
	if err := source.complete(ctx); err != nil {
		return err
	}
	return m.takeOver(ctx, source)
}

// cut gives the slots up. Everything that can be refused is refused before.
func (m *slotMove) cut(ctx context.Context, source *side) error {
	if err := m.mayCut(source); err != nil {
		return err
	}
	checked := source.newest.Now.Mark()
	if err := source.awaitMemories(ctx); err != nil {
		return err
	}
	if source.newest.Now.Mark() != checked { // its slots may be others, and a cut may wait that is not to be replaced
		return fmt.Errorf("slots: another operator has changed group %s since; nothing was changed. Run the same command again", source.name())
	}
	if _, err := source.readAll(m.ranges, "nothing was changed"); err != nil {
		return err
	}
	source.next(source.owned.Minus(m.ranges), m.nextVersion())
	cut := source.change.next
	cut.Leaving, cut.To, cut.LeftAt = m.ranges.String(), m.target.name(), cut.MapVersion
	fmt.Fprintf(m.out, "slots %s leave group %s for group %s: nothing is granted in them for the longest lease, %s. This cannot be taken back, only finished\n",
		m.ranges, source.name(), m.target.name(), humanDuration(source.lease()))
	if err := source.allowed(); err != nil {
		return err
	}
	return source.run(ctx)
}

// mayCut checks what only stops a move that has not begun.
func (m *slotMove) mayCut(source *side) error {
	for _, s := range m.sides {
		if s.err != nil {
			return fmt.Errorf("%w; nothing was changed. The slots of all groups must be known when a move begins", s.err)
		}
	}
	for _, s := range []*side{source, m.target} {
		switch {
		case len(m.waiting(s)) > 0:
			return m.unfinished(s)
		case !s.newest.InForce:
			return s.unfinishedChange()
		}
		s.next(s.owned, s.newest.Now.MapVersion)
		if err := errors.Join(s.sameSettings(), distinct(s.all, s.what), checkClocks(s.all, s.what), s.allowed()); err != nil {
			return err
		}
	}
	if from, to := source.newest.Now.Prefixes, m.target.newest.Now.Prefixes; !slices.Equal(from, to) {
		return fmt.Errorf("slots: group %s has the key prefixes %q, and group %s has %q; nothing was changed. Give both the same ones: redlockd reconfigure --key-prefixes", source.name(), from, m.target.name(), to)
	}
	return m.fencesMeet(source)
}

// fencesMeet: registers of the target that rise too far above its clocks would lose a promise: that
// fences rise although all masters and daemons lose their memory at once, see pool/README.md.
func (m *slotMove) fencesMeet(source *side) error {
	o := &source.group.options
	limit := o.MaxTTL + o.MaxTTL/100
	now := clock.Micros(o.Clock.Now()) + medianOffset(m.target.all)
	for db := range o.Databases {
		from, _ := highest(source.all, db)
		to, _ := highest(m.target.all, db)
		if ahead := time.Duration(from-max(now, to)) * time.Microsecond; ahead > limit {
			return fmt.Errorf("slots: database %d: the fences of group %s are %s ahead of those of group %s, at most %s are allowed; nothing was changed. Begin group %s with redlockd bootstrap --fence-above %d",
				db, source.name(), humanDuration(ahead), m.target.name(), humanDuration(limit), m.target.name(), from)
		}
	}
	return nil
}

// takeOver waits until the slots are free, and gives them to the target.
func (m *slotMove) takeOver(ctx context.Context, source *side) error {
	if err := errors.Join(source.sameSettings(), m.target.sameSettings()); err != nil {
		return err
	}
	if err := m.freeze(ctx, source); err != nil {
		return err
	}
	if err := source.awaitMemories(ctx); err != nil {
		return err
	}
	if err := m.lookAgain(ctx); err != nil {
		return err
	}
	t := m.target
	if t.owned.Contains(m.ranges) && t.newest.InForce { // another operator was faster
		return m.finish(ctx)
	}
	if !m.stillWaits(source) {
		return fmt.Errorf("slots: another operator has moved %s since; run the same command again", m.ranges)
	}
	carried, err := source.readAll(m.ranges, "the slots stay frozen until it is settled")
	if err != nil {
		return err
	}
	switch {
	case t.newest.InForce:
		t.next(t.owned.Plus(m.ranges), m.nextVersion())
		if rest := t.leaving; len(m.waiting(t)) == 0 || len(rest.And(m.ranges)) > 0 { // they came back
			t.change.next.Leaving, t.change.next.To, t.change.next.LeftAt = "", "", 0
		}
	case slices.Equal(t.gained(), m.ranges):
		t.resume()
	default:
		return t.unfinishedChange()
	}
	t.carry = func(one *candidate) error { return t.install(one, carried, m.ranges) }
	if err := t.allowed(); err != nil {
		return err
	}
	fmt.Fprintf(m.out, "%s go to group %s\n", carried.text(), t.name())
	if err := t.run(ctx); err != nil {
		return err
	}
	fmt.Fprintf(m.out, "slots %s are in group %s; write that into the file of the daemons\n", m.ranges, t.name())
	return nil
}

// lookAgain reads what all groups carry at one time: twice the same, and an epoch does not come back.
func (m *slotMove) lookAgain(ctx context.Context) error {
	var before []string
	for range 5 {
		var marks []string
		for _, s := range m.sides {
			if s.err = s.look(ctx); s.err == nil {
				marks = append(marks, s.newest.Now.Mark())
			} else {
				marks = append(marks, "")
			}
		}
		if slices.Equal(marks, before) {
			return m.target.err
		}
		before = marks
	}
	return errors.New("slots: the groups change, or answer and do not answer, while they are read; run the same command again")
}

// stillWaits reports whether the cut of the source is the last change of these slots, and as old as
// the freeze. Otherwise they were in the target since, and what the source has of them is old.
func (m *slotMove) stillWaits(source *side) bool {
	found, err := m.frozen()
	if err != nil || found != source || slices.ContainsFunc(m.sides, func(s *side) bool { return s.err == nil && len(s.settled().And(m.ranges)) > 0 }) {
		return false
	}
	rest, err := m.untilFree(source)
	return err == nil && rest <= 0
}

// freeze waits until the cut has been in force for the longest lease.
func (m *slotMove) freeze(ctx context.Context, source *side) error {
	for {
		if err := source.look(ctx); err != nil {
			return err
		}
		rest, err := m.untilFree(source)
		if err != nil || rest <= 0 {
			return err
		}
		text := fmt.Sprintf("slots %s are frozen: waiting %%s until the leases in them are over\n", m.ranges)
		if err := source.group.countdown(ctx, rest, text, m.out); err != nil {
			return err
		}
	}
}

// untilFree is in how long the leases of before the cut are over.
func (m *slotMove) untilFree(source *side) (time.Duration, error) {
	now := source.newest.Now
	if !source.newest.InForce || now.To != m.target.name() || !source.leaving.Contains(m.ranges) {
		return 0, fmt.Errorf("slots: group %s has epoch %d, and that does not give %s to group %s; run the same command again", source.name(), now.Epoch, m.ranges, m.target.name())
	}
	since, err := source.inForceSince()
	return source.lease() - since, err
}
