// CheckSlots: whether the masters of all groups have the map of slots of these options.

package setup

import (
	"context"
	"fmt"
	"slices"

	"redlockd/pool"
)

// CheckSlots reads the masters of all groups before one of them is bootstrapped. Its error names
// what differs. Two maps in force at a time would give a slot to two groups, each of which serves
// the daemons with its map.
func CheckSlots(ctx context.Context, all ...pool.Options) error {
	for _, o := range all {
		if len(all) == 1 && o.Slots == "" {
			return nil // as ever: the bootstrap compares the settings itself
		}
		g, err := newGroup(o, stepTimeout)
		if err != nil {
			return err
		}
		for _, m := range g.options.Masters {
			link, err := g.dial(ctx, m, 0)
			if err != nil {
				continue // a bootstrap needs it and reports it
			}
			one := &candidate{master: m, link: link}
			err = g.readSeals([]*candidate{one}, "bootstrap")
			link.Close()
			if err != nil {
				return err
			}
			other := slices.IndexFunc(one.seals, func(s sealRecord) bool {
				carries := parseSettings(s.identity)
				return len(carries) > 0 && (carries["group"] != g.options.Group || carries["slots"] != g.options.Slots)
			})
			if other >= 0 {
				carries := parseSettings(one.seals[other].identity)
				return fmt.Errorf("bootstrap: master %s of group %s with the slots %s serves group %s with the slots %s; no group was bootstrapped: two maps would give slots to two groups at a time. Give all daemons the map of the masters, see Several groups in the runbook",
					m.Name, g.options.Group, orAll(g.options.Slots), carries["group"], orAll(carries["slots"]))
			}
		}
	}
	return nil
}
