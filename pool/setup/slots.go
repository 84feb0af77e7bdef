// CheckSlots: whether the masters of all groups have the map of slots of these options.

package setup

import (
	"context"
	"errors"
	"fmt"

	"redlockd/pool"
)

// ErrUnread is wrapped by the error of CheckSlots if a group does not answer.
var ErrUnread = errors.New("so its slots cannot be compared, and no group was bootstrapped")

// CheckSlots reads the masters of all groups before one of them is bootstrapped. Its error names
// what differs. Two maps in force at a time would give a slot to two groups, each of which serves
// the daemons with its map.
func CheckSlots(ctx context.Context, all ...pool.Options) error {
	if len(all) == 1 && all[0].Slots == "" {
		return nil // as ever: the bootstrap compares the settings itself
	}
	for _, o := range all {
		g, err := newGroup(o, stepTimeout)
		if err != nil {
			return err
		}
		if err := g.checkSlots(ctx); err != nil {
			return err
		}
	}
	return nil
}

// checkSlots needs so many masters that a configuration which is in force is on one of them.
func (g *group) checkSlots(ctx context.Context) error {
	answered, silent := 0, error(nil)
	for _, m := range g.options.Masters {
		link, err := g.dial(ctx, m, 0)
		if err != nil {
			silent = fmt.Errorf("master %s: %w", m.Name, err)
			continue
		}
		one := &candidate{master: m, link: link}
		err = g.readSeals([]*candidate{one}, "bootstrap")
		link.Close()
		if err != nil {
			return err
		}
		answered++
		for _, s := range one.seals {
			if carries := parseSettings(s.identity); len(carries) > 0 && (carries["group"] != g.options.Group || carries["slots"] != g.options.Slots) {
				return fmt.Errorf("bootstrap: master %s of group %s with the slots %s serves group %s with the slots %s; no group was bootstrapped: two maps would give slots to two groups at a time. Give all daemons the map of the masters, see Several groups in the runbook",
					m.Name, g.options.Group, orAll(g.options.Slots), carries["group"], orAll(carries["slots"]))
			}
		}
	}
	if needed := pool.Quorum(len(g.options.Masters)); answered < needed {
		return fmt.Errorf("bootstrap: only %d masters of group %s answer, %d are needed (%w), %w", answered, g.options.Group, needed, silent, ErrUnread)
	}
	return nil
}
