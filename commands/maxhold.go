package commands

import "time"

// Longest returns the longest time for which the call's client holds a lock: by the daemon, by its user, or by the
// client's own word; 0 = as long as it is extended.
func (d *Deps) Longest(c *Call, own time.Duration) time.Duration {
	limits := [...]time.Duration{d.MaxHold, own, 0}
	if who := c.Rights(); who != nil {
		limits[2] = who.MaxHold
	}
	least := time.Duration(0)
	for _, one := range limits {
		if one > 0 && (least == 0 || one < least) {
			least = one
		}
	}
	return least
}
