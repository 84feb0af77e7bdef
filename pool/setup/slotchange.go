// Slot changes: what a change of a group's slots is, and which command finishes it.

package setup

import (
	"errors"
	"fmt"

	"redlockd/pool/admission"
	"redlockd/redlock/slots"
)

// gainedSlots are those of a configuration that the former one had not.
func gainedSlots(former, now *admission.Configuration) slots.Ranges {
	if former == nil || now == nil {
		return nil
	}
	before, err1 := slots.ParseOwned(former.Slots)
	after, err2 := slots.ParseOwned(now.Slots)
	if errors.Join(err1, err2) != nil {
		return nil
	}
	return after.Minus(before)
}

func (g *group) finishCommand(of admission.StoredConfiguration) string {
	now, gained := of.Now, gainedSlots(of.Former, of.Now)
	switch {
	case of.Former == nil || of.Former.MapVersion == now.MapVersion:
		return "redlockd reconfigure --masters " + g.options.Names(now)
	case len(gained) > 0:
		return moveCommand(gained.String(), now.Group)
	}
	return moveCommand(now.Leaving, now.To)
}

func moveCommand(ranges, to string) string {
	return fmt.Sprintf("redlockd slots move %s --to %s", ranges, to)
}
