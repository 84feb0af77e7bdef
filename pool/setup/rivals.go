// Rivals: several changes of one configuration at once.
//
// All operators begin with the same master, and the first one there goes on. But they may not all
// reach that master, and then each change may have some masters and none a quorum. So changes of
// one epoch have an order, that of their texts. A change that can get no quorum any more has lost,
// and a change of higher order takes its masters:
//
//   - A master only ever goes on to a change of higher order. So if masters with changes of higher
//     order are so many that the others are no quorum, the change never gets one.
//   - It has never had one either: the first time that a master of it is taken, those of higher
//     order never carried it. So no daemon has counted a quorum of it, at whatever moments it looked.
//   - Among the changes that all masters carry, the lowest one has a quorum or has lost. So the
//     same commands, run again, end with one change in force.

package setup

import (
	"fmt"
	"slices"

	"redlockd/pool"
	"redlockd/pool/admission"
)

// newest is the configuration with the highest epoch that a master carries. Of several changes it
// is the one that is in force or will be: one that has not lost, with the most masters.
func (c *change) newest() (newest admission.StoredConfiguration) {
	most := 0
	for _, one := range c.all {
		for _, s := range one.seals {
			now := s.stored
			if !s.carriesStored() {
				continue
			}
			if newest.Now != nil && now.Now.Mark() == newest.Now.Mark() {
				newest.InForce, newest.At = newest.InForce || now.InForce, max(newest.At, now.At)
				continue
			}
			if n := c.count(now.Now.Mark()); newest.Now == nil || c.isNewer(now, n, newest, most) {
				newest, most = now, n
			}
		}
	}
	return newest
}

// isNewer compares two configurations, each with the number of masters that carry it.
func (c *change) isNewer(a admission.StoredConfiguration, masters int, b admission.StoredConfiguration, others int) bool {
	switch {
	case a.Now.Epoch != b.Now.Epoch:
		return a.Now.Epoch > b.Now.Epoch
	case a.InForce || b.InForce:
		return !b.InForce
	case c.hasLost(a) != c.hasLost(b):
		return c.hasLost(b)
	case masters != others:
		return masters > others
	}
	return a.Now.String() > b.Now.String()
}

// count returns the number of masters that carry a mark.
func (c *change) count(mark string) (n int) {
	for _, one := range c.all {
		if slices.ContainsFunc(one.seals, func(s sealRecord) bool { return s.mark() == mark }) {
			n++
		}
	}
	return n
}

// hasLost reports whether a change can get no quorum of its former list any more.
func (c *change) hasLost(of admission.StoredConfiguration) bool {
	if of.Former == nil || of.InForce {
		return false
	}
	var lowest []string
	for _, m := range of.Former.Masters {
		for _, one := range c.all {
			if one.master.Name == m.Name {
				lowest = append(lowest, one.lowestChange(of.Now.Epoch))
			}
		}
	}
	return isLost(of.Now.String(), lowest, len(of.Former.Masters))
}

// lowestChange is the text of the lowest change to an epoch that a master carries in any database; ""
// if it carries something else, too.
func (c *candidate) lowestChange(epoch int64) (lowest string) {
	for _, s := range c.seals {
		if s.identity == "" {
			continue
		}
		if !s.carriesStored() || s.stored.Now.Epoch != epoch {
			return ""
		}
		if text := s.stored.Now.String(); lowest == "" || text < lowest {
			lowest = text
		}
	}
	return lowest
}

// carriesStored reports whether the text beside a seal is that of its mark.
func (s *sealRecord) carriesStored() bool {
	return s.stored.Now != nil && s.mark() == s.stored.Now.Mark()
}

// isLost reports whether so many of n masters carry a change of higher order that the others are
// no quorum.
func isLost(text string, carried []string, n int) bool {
	higher := 0
	for _, other := range carried {
		if other > text {
			higher++
		}
	}
	return higher > n-pool.Quorum(n)
}

// lostChanges are those in whose place the next configuration may come.
func (c *change) lostChanges() (lost []*admission.Configuration) {
	for _, one := range c.all {
		for _, s := range one.seals {
			if !s.carriesStored() || s.stored.Now.Epoch != c.next.Epoch || s.stored.Former == nil || s.stored.Former.Mark() != c.former.Mark() {
				continue
			}
			now := s.stored.Now
			known := slices.ContainsFunc(lost, func(other *admission.Configuration) bool { return other.Mark() == now.Mark() })
			if !known && now.String() < c.next.String() && c.hasLost(s.stored) {
				lost = append(lost, now)
			}
		}
	}
	return lost
}

// carriesNext reports whether a master carried the next configuration when it was read.
func (c *change) carriesNext(one *candidate) bool {
	return slices.ContainsFunc(one.seals, func(s sealRecord) bool { return s.mark() == c.next.Mark() })
}

// rival is the error if a master carries another change of the former configuration.
func (c *change) rival(one *candidate) error {
	if err := c.group.readSeals([]*candidate{one}, c.command()); err != nil {
		return err
	}
	for _, s := range one.seals {
		if now := s.stored.Now; now != nil && s.mark() == now.Mark() && now.Epoch >= c.next.Epoch {
			return fmt.Errorf("%s: another change, to epoch %d, came first on master %s; nothing was changed by this one. Wait until it is finished, then run this one again; if its operator is gone, finish it with %s",
				c.command(), now.Epoch, one.master.Name, c.group.finishCommand(s.stored))
		}
	}
	return nil
}
