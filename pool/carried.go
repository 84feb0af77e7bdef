// Carried: the configuration that a master carries, and what other databases show of it.

package pool

import (
	"fmt"
	"slices"
	"time"

	"redlockd/pool/admission"
)

// carried has what stood at a master's seal at the last look.
type carried struct {
	at    time.Duration // 0 = never
	older bool          // what stands there may be older than a change, and counts as nothing
	admission.Carried
}

// groupEpoch is the configuration of a daemon, guarded like the group.
type groupEpoch struct {
	admission.Known               // "" = unknown
	since           time.Duration // masters are admitted from then on
	next            *admission.Configuration
	later           *admission.Configuration // that is in force by what one master has stored; nil = none
}

// lookAt returns what counts of what stands at a master's seal, and the base of its incarnation if the
// settings are this daemon's. whole is the daemon's fingerprint there without a mark, and prefix the
// first one of its group. What of this group may be older than a change counts as nothing.
func lookAt(seal string, older bool, stored admission.StoredConfiguration, whole, prefix string) (c carried, base int64) {
	print := admission.FingerprintOf(seal)
	if now := stored.Now; print == "" && now != nil && now.Prefixes[0] != prefix {
		print = now.String() // not blank: the seal of its daemons has another name
	}
	settings, mark := admission.SplitMark(print)
	ours, _ := admission.SplitMark(whole)
	c.Carried = admission.Carried{Fingerprint: print, Mark: mark, Ours: settings == ours && mark != "", Stored: stored}
	if incarnation, err := admission.ParseIdentity(seal); err == nil && c.Ours {
		base = incarnation.Base
	}
	if admission.SameGroup(print, whole) && (older || !admission.SameDB(print, whole)) {
		c.Carried, c.older = admission.Carried{Stored: stored}, older
	}
	return c, base
}

// compare is the epoch that a master carries, and how its configuration compares with that of a
// daemon of this group.
func (c *carried) compare(own, group, name string) (epoch int64, word string) {
	epoch = admission.EpochOf(c.Mark)
	switch now := c.Stored.Now; {
	case c.at == 0 || own == "":
		return epoch, ""
	case c.Fingerprint == "":
		return epoch, "none"
	case c.Ours && c.Mark == own:
		return epoch, configurationCurrent
	case now == nil || now.Mark() != c.Mark || now.Group != group || epoch == admission.EpochOf(own):
		return epoch, "other"
	case c.hasLeft(name):
		return epoch, "left"
	case epoch > admission.EpochOf(own):
		return epoch, "newer"
	}
	return epoch, "stale"
}

// hasLeft reports whether the master carries a configuration whose list is without it.
func (c *carried) hasLeft(name string) bool {
	now := c.Stored.Now
	return now != nil && now.Mark() == c.Mark && !slices.ContainsFunc(now.Masters, func(m Master) bool { return m.Name == name })
}

// leftText tells people that a change has left the master out.
func (c *carried) leftText(name string) string {
	if !c.hasLeft(name) {
		return ""
	}
	return fmt.Sprintf("; this master left the group at epoch %d", c.Stored.Now.Epoch)
}

// elsewhere has what the other databases show: the configuration that this daemon has there,
// and the masters that have proved it there. A change renames all databases of a master at
// once, so a proof in one is a proof for a database that has not been used yet.
type elsewhere struct {
	known  admission.Known
	later  *admission.Configuration // see groupEpoch
	proved map[string]bool          // by master
}
