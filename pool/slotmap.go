// Slot map: the slots of the group by its latest configuration.

package pool

import (
	"sync/atomic"

	"redlockd/pool/admission"
)

// slotMap begins with the slots of the options.
type slotMap struct {
	onConfiguration func(*Configuration)
	latest          atomic.Pointer[Configuration] // that has changed them; nil = none
}

// take takes what a configuration says about the slots, unless a later one has changed it.
func (m *slotMap) take(c *Configuration) {
	if m.onConfiguration != nil {
		m.onConfiguration(c)
	}
	for {
		before := m.latest.Load()
		if before != nil && c.MapVersion < before.MapVersion || m.latest.CompareAndSwap(before, c) {
			return
		}
	}
}

// set puts the slots of now into options.
func (m *slotMap) set(o *Options) {
	if c := m.latest.Load(); c != nil && c.MapVersion >= o.MapVersion {
		o.Slots, o.MapVersion, o.Leaving, o.To, o.LeftAt = c.Slots, c.MapVersion, c.Leaving, c.To, c.LeftAt
	}
}

// follows reports whether this daemon may follow a configuration. Only the lists and the slots may
// differ: limits are its own, and so is the choice of addresses that get the login. Slots change for a daemon that serves all groups, by moves alone.
func (o *Options) follows(next *admission.Configuration) bool {
	own := o.Configuration(next.Epoch)
	sameMap := own.SameSlots(next) || o.OnConfiguration != nil && next.MapVersion > own.MapVersion
	return !o.FollowOff && own.SameSettings(next) && sameMap && o.unnamed(next) == ""
}
