// Survey: which configuration the masters of a group carry, by the last look at each of them.

package admission

import "slices"

// Carried has what stood at one master's seal.
type Carried struct {
	Fingerprint string // "" = blank, or it may be older than a change
	Mark        string
	Ours        bool // the settings are this daemon's, whatever the mark is
	Fresh       bool // it was looked at a moment ago, or is connected
	Stored      StoredConfiguration
}

// Survey is all masters of a daemon's list.
type Survey []Carried

// Known is a mark and the texts of its configuration.
type Known struct{ Mark, Texts string }

// count returns the number of masters that carry a mark.
func (s Survey) count(mark string) (n int) {
	for i := range s {
		if s[i].Mark == mark {
			n++
		}
	}
	return n
}

// Majority is the configuration that so many masters carry with this daemon's settings, if it is
// in force.
func (s Survey) Majority(quorum int, known Known) Known {
	i := slices.IndexFunc(s, func(c Carried) bool { return c.Ours && s.count(c.Mark) >= quorum })
	if i < 0 {
		return Known{}
	}
	return s.inForce(s[i].Mark, known)
}

// inForce returns a mark and its texts if a master has stored that it is in force. A change that
// is not may have another beside it, of which a quorum of a shorter list has as many masters.
func (s Survey) inForce(mark string, known Known) Known {
	for _, c := range s {
		if c.Stored.Now != nil && c.Stored.InForce && c.Stored.Now.Mark() == mark {
			return Known{mark, c.Stored.Texts()}
		}
	}
	if mark == known.Mark {
		return known
	}
	return Known{}
}

// Blank is the configuration of a group of which each master answers, and is blank or carries
// this daemon's settings: the one that some of them have, the one that this daemon
// had, or the first.
func (s Survey) Blank(known Known, first *Configuration) Known {
	mark := ""
	for _, c := range s {
		switch {
		case !c.Fresh, c.Fingerprint != "" && !c.Ours, c.Ours && mark != "" && c.Mark != mark:
			return Known{}
		case c.Ours:
			mark = c.Mark
		}
	}
	switch {
	case mark != "":
		return s.inForce(mark, known)
	case known.Mark != "":
		return known
	}
	return Known{first.Mark(), StoredConfiguration{Now: first, InForce: true}.Texts()}
}

// Next is the configuration that replaced this daemon's: it is in force, by what a master has stored
// or because a quorum of the list that it replaced carries it, and a quorum of this daemon's masters
// does. One that a master carries with this daemon's settings is its own, also if another master is
// reached under a wrong name.
func (s Survey) Next(list *Configuration, quorum int, epoch int64) (next *Configuration) {
	for _, c := range s {
		now := c.Stored.Now
		own := slices.ContainsFunc(s, func(one Carried) bool { return one.Ours && one.Mark == c.Mark })
		if own || now == nil || now.Mark() != c.Mark || now.Epoch <= epoch || s.count(c.Mark) < quorum {
			continue
		}
		if former := c.Stored.Former; s.inForce(c.Mark, Known{}).Mark == "" && (former == nil || !former.SameMasters(list)) {
			continue
		}
		next, epoch = now, now.Epoch
	}
	return next
}

// Later is a configuration with a higher epoch that a master has stored as in force, nil for none. Once
// in force it always was, whatever memory tells it: the masters with the former epoch were no quorum
// any more. If they are one now, some of them are older than they claim.
func (s Survey) Later(epoch int64) (later *Configuration) {
	for _, c := range s {
		if now := c.Stored.Now; now != nil && c.Stored.InForce && now.Epoch > epoch {
			later, epoch = now, now.Epoch
		}
	}
	return later
}
