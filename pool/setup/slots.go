// CheckSlots: whether the masters of all groups have the map of slots of these options.

package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"redlockd/pool"
	"redlockd/redlock/slots"
)

// ErrUnread is wrapped by the error of CheckSlots if a group does not answer.
var ErrUnread = errors.New("so its slots cannot be compared, and no group was bootstrapped")

// CheckSlots reads the masters of all groups before one of them is bootstrapped. Its error names
// what differs. Two maps in force at a time would give a slot to two groups, each of which serves
// the daemons with its map. Slots that have moved are those that the masters have; a group whose
// masters are blank has those of the options, which may be older.
func CheckSlots(ctx context.Context, all ...pool.Options) error {
	if len(all) == 1 && all[0].Slots == "" {
		return nil // as ever: the bootstrap compares the settings itself
	}
	var sides []*side
	for _, o := range all {
		g, err := newGroup(o, stepTimeout)
		if err != nil {
			return err
		}
		s, err := g.checkSlots(ctx)
		if err != nil {
			return err
		}
		sides = append(sides, s)
	}
	if len(sides) == 1 {
		return nil
	}
	return compareMaps(sides)
}

// checkSlots needs so many masters that a configuration which is in force is on one of them.
func (g *group) checkSlots(ctx context.Context) (*side, error) {
	s, silent := &side{change: &change{group: g, out: io.Discard}}, error(nil)
	defer func() { closeAll(s.all) }()
	for _, m := range g.options.Masters {
		link, err := g.dial(ctx, m, 0)
		if err != nil {
			silent = fmt.Errorf("master %s: %w", m.Name, err)
			continue
		}
		s.all = append(s.all, &candidate{master: m, link: link})
	}
	if err := g.readSeals(s.all, "bootstrap"); err != nil {
		return nil, err
	}
	list := g.options.Configuration(0)
	if s.newest = s.change.newest(); s.newest.Now != nil { // the list of the options may be older
		s.connect(ctx, s.newest.Now.Masters)
		if err := g.readSeals(s.all, "bootstrap"); err != nil {
			return nil, err
		}
		s.newest = s.change.newest()
		list = s.newest.Now
	}
	g.keep(s.newest, io.Discard)
	answered := 0
	for _, one := range s.all {
		if !has(list, one.master.Name) {
			continue // it has left, and may serve another group by now
		}
		answered++
		for _, r := range one.seals {
			carries, moved := parseSettings(r.identity), r.stored.Now != nil && r.carriesStored() && s.newest.Now.MapVersion > 0
			if len(carries) > 0 && (carries["group"] != g.options.Group || carries["slots"] != g.options.Slots && !moved) {
				return nil, fmt.Errorf("bootstrap: master %s of group %s with the slots %s serves group %s with the slots %s; no group was bootstrapped: two maps would give slots to two groups at a time. Give all daemons the map of the masters, see Several groups in the runbook",
					one.master.Name, g.options.Group, orAll(g.options.Slots), carries["group"], orAll(carries["slots"]))
			}
		}
	}
	if needed := pool.Quorum(len(list.Masters)); answered < needed {
		return nil, fmt.Errorf("bootstrap: only %d masters of group %s answer, %d of %s are needed (%w), %w", answered, g.options.Group, needed, list.Names(), cmp.Or(silent, errors.New("the others have joined since")), ErrUnread)
	}
	owned, err1 := slots.ParseOwned(g.options.Slots)
	s.owned = owned
	var err2 error
	if g.options.Leaving != "" {
		s.leaving, err2 = slots.Parse(g.options.Leaving)
	}
	return s, errors.Join(err1, err2)
}

// compareMaps finds slots that two groups have, and those that none has and none is about to get.
func compareMaps(sides []*side) error {
	rest := slots.All()
	for i, s := range sides {
		rest = rest.Minus(s.owned)
		for _, other := range sides[:i] {
			if both := s.owned.And(other.owned); len(both) > 0 {
				return fmt.Errorf("bootstrap: slots %s are in the groups %s and %s: slots have moved, and the file is older; no group was bootstrapped. Write the map of redlockd slots into the file of all daemons", both, other.name(), s.name())
			}
		}
	}
	for _, s := range sides {
		for _, to := range sides {
			if to.name() == s.group.options.To && to.newest.Now != nil {
				rest = rest.Minus(s.leaving)
			}
		}
	}
	if len(rest) > 0 {
		return fmt.Errorf("bootstrap: slots %s are in no group: slots have moved, and the file is older; no group was bootstrapped. If a group that had them is blank, write them into its table in the file of all daemons, see Several groups in the runbook", rest)
	}
	return nil
}
