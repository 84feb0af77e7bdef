// Evidence: what the masters show of the configuration that they carry, and whether a daemon may
// put its own on a master that does not carry it. epoch.go collects it.

package pool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"redlockd/pool/admission"
)

const (
	// maxEvidence is how long ago a master proved that it carries the configuration, so
	// that it counts. A heartbeat proves it every 100 ms.
	maxEvidence = 150 * time.Millisecond
	// minEvidence is for how long it has carried it without a break. A daemon that counts
	// masters just before a change may write up to maxEvidence and twice
	// admission.MaxSkew later. After minEvidence no such write is under way any more.
	minEvidence = 1500 * time.Millisecond
	// maxLook is how long ago a master was looked at that may be blank: an unfit master is
	// dialled again within maxRetryDelay.
	maxLook = 2 * time.Second
	// maxTurns bounds the milliseconds that a first dial waits to begin with a blank master.
	maxTurns = 500
)

// evidence has what all masters of a daemon's list show at one moment.
type evidence struct {
	known   admission.Known          // the daemon's configuration; "" = unknown
	next    *admission.Configuration // that replaced it, if it was left behind
	masters []masterEvidence
}

type masterEvidence struct {
	name      string
	connected bool
	carries   admission.Carried
	older     bool // what it has may be older than a change, and counts as nothing
	proves    bool // the daemon's configuration, just now
	hasProved bool // … for minEvidence without a break
	recently  bool // … within the longest lease
}

func (e *evidence) survey() (s admission.Survey) {
	for i := range e.masters {
		s = append(s, e.masters[i].carries)
	}
	return s
}

// mayNotBegin is the reason why the daemon may not put its configuration on a master
// that does not carry it; "" = it may. A quorum of its list proves that no change has put
// another one in its place. If all masters are blank, or carry it, they get it in the
// order of their names: of two lists with a common master, one stops there.
func (e *evidence) mayNotBegin(master string, others elsewhere, o *Options, later *admission.Configuration) string {
	n, first := 0, true
	for _, other := range e.masters {
		if other.name != master && (other.hasProved || others.known.Mark == e.known.Mark && others.proved[other.name]) {
			n++
		}
		first = first && (other.proves || other.name >= master)
	}
	if n >= Quorum(len(e.masters)) {
		return inForceText(later)
	}
	if blank := e.blank(o); blank.Mark != "" && blank.Mark == e.known.Mark && first {
		return inForceText(later)
	}
	return e.String()
}

func inForceText(later *admission.Configuration) string {
	if later == nil {
		return ""
	}
	return "a later configuration of the group is in force"
}

// blank is the configuration with which the daemon begins a group of which all masters
// answer, and the rest is blank where fewer than a quorum carry it. If all masters of an old
// list come back empty, they show nothing of the changes that were made since. But a change
// rests for the longest lease, and keeps so many masters that the others are no quorum. So a
// daemon to which a quorum has proved its configuration within the longest lease has missed one
// change at most, and what that left has lost its quorum, too.
func (e *evidence) blank(o *Options) admission.Known {
	recently := 0
	for i := range e.masters {
		if e.masters[i].recently {
			recently++
		}
	}
	if o.AwaitBootstrap && (e.known.Mark == "" || recently < Quorum(len(e.masters))) {
		return admission.Known{}
	}
	if e.next != nil && e.next.Epoch >= admission.EpochOf(e.known.Mark) {
		return admission.Known{} // it was left behind, and leases may run that are longer than its own
	}
	return e.survey().Blank(e.known, o.Configuration(1))
}

// later is a configuration that is in force by what a master has stored, and has a higher epoch than
// that of a mark; nil for none.
func (e *evidence) later(mark string, others elsewhere) *admission.Configuration {
	if mark == "" {
		return nil
	}
	later := e.survey().Later(admission.EpochOf(mark))
	if later == nil && others.later != nil && others.later.Epoch > admission.EpochOf(mark) {
		return others.later
	}
	return later
}

// laterText tells people that a master which carries the daemon's settings is not used beside a later
// configuration, for people; "" if it is none, or if what the master carries is the reason.
func (e *evidence) laterText(o *Options, later *admission.Configuration, of *carried) string {
	if later == nil || !of.Ours || of.Mark == later.Mark() {
		return ""
	}
	by := "of another database"
	for _, m := range e.masters {
		if now := m.carries.Stored.Now; now != nil && now.Mark() == later.Mark() {
			by = m.name
		}
	}
	return fmt.Sprintf("master %s has a later configuration of group %s in force, epoch %d with --masters %s; nothing is granted beside it. Start this daemon with that list; if %[1]s is not a master of this group, correct its address",
		by, later.Group, later.Epoch, o.Names(later))
}

// allBlank reports whether all masters answer and none of them has ever had a configuration.
func (e *evidence) allBlank() bool {
	return !slices.ContainsFunc(e.masters, func(m masterEvidence) bool {
		return !m.carries.Fresh || m.older || m.carries.Fingerprint != ""
	})
}

// String counts the masters that carry the configuration, for people.
func (e *evidence) String() string {
	if e.allBlank() {
		return "so are all masters: for a new group run redlockd bootstrap; if they lost their memory, see All masters lost in the runbook"
	}
	var carry, silent, older []string
	for _, m := range e.masters {
		if m.older {
			older = append(older, m.name)
		}
		switch {
		case !m.carries.Fresh:
			silent = append(silent, m.name)
		case m.proves || !m.connected && m.carries.Ours:
			carry = append(carry, m.name)
		}
	}
	text := fmt.Sprintf("%d of %d masters carry the configuration (%s), and %d must do so for %s before it is put on another one",
		len(carry), len(e.masters), cmp.Or(strings.Join(carry, ", "), "none"), Quorum(len(e.masters)), minEvidence)
	if len(older) > 0 {
		text += "; with what may be older files came back " + strings.Join(older, ", ")
	}
	switch {
	case len(silent) > 0:
		text += fmt.Sprintf("; no answer from %s: bring it back, or make sure that this daemon has the group's masters and run redlockd bootstrap --aged MASTER", strings.Join(silent, ", "))
	case len(carry) == 0:
		text += "; for a new group run redlockd bootstrap; if all masters lost their memory, see All masters lost in the runbook"
	default:
		text += "; make sure that this daemon has the group's masters and run redlockd bootstrap --aged MASTER"
	}
	return text
}
