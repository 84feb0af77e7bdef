// Requirements of a change: what the masters must show before it begins.

package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"redlockd/pool"
	"redlockd/pool/admission"
	"redlockd/pool/clock"
	"redlockd/pool/wire"
)

// allowed checks that quorums of both lists meet, and that enough masters answer.
func (c *change) allowed() error {
	n, q, next := len(c.former.Masters), pool.Quorum(len(c.former.Masters)), pool.Quorum(len(c.next.Masters))
	common := 0
	for _, m := range c.next.Masters {
		if has(c.former, m.Name) {
			common++
		}
	}
	switch {
	case q+next <= n:
		return fmt.Errorf("reconfigure: from %d masters to %d: a quorum of %d need not meet one of %d; nothing was changed. First change to %d of them, then to %d; or stop all daemons and run redlockd reconfigure --force",
			n, len(c.next.Masters), next, q, n-1, len(c.next.Masters))
	case common < next:
		return fmt.Errorf("reconfigure: only %d of the %d masters of the new list are in the former one, and %d must be, so that they can vote while the others are new; nothing was changed. Replace a minority at a time, or stop all daemons and run redlockd reconfigure --force",
			common, len(c.next.Masters), next)
	}
	marks := []string{c.former.Mark(), c.next.Mark()}
	for _, lost := range c.lostChanges() {
		marks = append(marks, lost.Mark())
	}
	for db := range c.group.options.Databases {
		all, common := c.carriers(db, marks...)
		if len(all) < q || len(common) < next {
			return fmt.Errorf("%s: group %s, database %d: of the masters of the former list that carry epoch %d, %s answer: %d must, and %d that are in both lists; nothing was changed. First bring back what is missing%s",
				c.command(), c.group.options.Group, db, c.former.Epoch, strings.Join(append(all, "none")[:max(1, len(all))], ", "), q, next, c.olderText())
		}
	}
	return nil
}

// olderText names the masters that may lack a change, for people.
func (c *change) olderText() (text string) {
	for _, one := range c.all {
		if slices.ContainsFunc(one.seals, func(s sealRecord) bool { return s.older }) {
			text += fmt.Sprintf("; %s %s: it counts when a daemon has admitted it, or see A master with an older file in the runbook", one.master.Name, admission.OlderText)
		}
	}
	return text
}

// serves returns that a server which joins serves another group, "" if it does not: it would go on to
// refuse this group's daemons or, where both groups have one name, leave the other one. A master that
// comes back after changes carries a list that has some of the present masters.
func (c *change) serves(one *candidate) string {
	for _, s := range one.seals {
		if group := parseSettings(s.identity)["group"]; group != "" && group != c.group.options.Group {
			return "serves group " + group
		}
		isOurs := func(m wire.Master) bool {
			return slices.ContainsFunc(c.former.Masters, func(our wire.Master) bool { return our.Address == m.Address })
		}
		if s.carriesStored() && !slices.ContainsFunc(s.stored.Now.Masters, isOurs) {
			return "serves another group of this name, with the masters " + s.stored.Now.Names()
		}
	}
	return ""
}

// reachable checks that masters which join answer and are fit: a mistake in an address would put a
// master that cannot vote in the place of one that may come back.
func (c *change) reachable() error {
	var errs []error
	for _, m := range c.next.Masters {
		why := c.absent[m.Name]
		if i := slices.IndexFunc(c.all, func(one *candidate) bool { return one.master.Name == m.Name }); i >= 0 {
			why = c.serves(c.all[i])
		}
		if why != "" && !has(c.former, m.Name) && !c.terms.Absent {
			errs = append(errs, fmt.Errorf("%s: %s=%s joins and %s; nothing was changed. In the new list it cannot vote: a quorum would be %d of the other %d masters. Start it empty, or correct its name and address; if it is to join all the same, add --absent",
				c.command(), m.Name, m.Address, why, pool.Quorum(len(c.next.Masters)), len(c.next.Masters)-1))
		}
	}
	return errors.Join(errs...)
}

// untilVotes is how long it takes until each master of a list that answers votes, in ascending
// order; skip is the name of one that is left out.
func (c *change) untilVotes(list *admission.Configuration, skip string) (all []time.Duration) {
	age := c.group.options.Age()
	for _, one := range c.all {
		if !has(list, one.master.Name) || one.master.Name == skip {
			continue
		}
		wait := time.Duration(-1)
		for _, s := range one.seals {
			incarnation, err := admission.ParseIdentity(s.identity)
			switch {
			case err == nil && !s.older:
				wait = max(wait, 0, time.Duration(incarnation.Base-one.info.Est.At(c.group.options.Clock.Now()))*time.Microsecond+age)
			case s.identity != "": // a database without an identity is one that no daemon uses
				wait = max(wait, age)
			}
		}
		if wait < 0 {
			wait = age
		}
		all = append(all, wait)
	}
	slices.Sort(all)
	return all
}

// carriers are the masters of the former list that carry one of the marks, and those of
// them that are in both lists. One with an older file may have missed later changes.
func (c *change) carriers(db int, marks ...string) (all, common []string) {
	for _, one := range c.all {
		if name := one.master.Name; has(c.former, name) && c.carriesOneOf(one, db, marks) {
			all = append(all, name)
			if has(c.next, name) {
				common = append(common, name)
			}
		}
	}
	return all, common
}

// carriesOneOf reports whether a master carries one of the marks in a database. A change renames all
// databases of a master at once, so what is in another one counts where daemons have not used this one
// since it was emptied, or since a former change. Nothing is granted there before the master has begun anew.
func (c *change) carriesOneOf(one *candidate, db int, marks []string) bool {
	carries := func(s sealRecord) bool {
		return !s.older && slices.ContainsFunc(marks, func(mark string) bool {
			return strings.HasSuffix(admission.FingerprintOf(s.identity), "/epoch="+mark+"/master="+masterPart(c, one.master.Name))
		})
	}
	s := &one.seals[db]
	print := admission.FingerprintOf(s.identity)
	unused := print == "" || admission.SameGroup(print, c.group.options.Fingerprint(db, "", one.master.Name)) && admission.EpochOf(s.mark()) < c.former.Epoch
	return carries(*s) || unused && slices.ContainsFunc(one.seals, carries)
}

// masterPart is a master's name as fingerprints have it.
func masterPart(c *change, name string) string {
	_, part, _ := strings.Cut(c.group.options.Fingerprint(0, "", name), "/epoch=/master=")
	return part
}

// rest waits until the leases of the list before the former one are over. Before a quorum gets
// larger, it also waits until the daemons have renewed their holds, which they do at a third of
// the ttl: the larger quorum could not extend a lease that rests on a bare one.
func (c *change) rest(ctx context.Context, newest admission.StoredConfiguration) error {
	var wait time.Duration
	text := fmt.Sprintf("epoch %d is too young: waiting %%s until the leases before it are over\n", c.former.Epoch)
	if newest.Former != nil { // something was renamed
		now := clock.Micros(c.group.options.Clock.Now()) + medianOffset(c.all)
		wait = min(time.Duration(newest.At-now)*time.Microsecond, 0) + c.group.options.Age()
	}
	former, next := pool.Quorum(len(c.former.Masters)), pool.Quorum(len(c.next.Masters))
	if renewed := c.group.options.MaxTTL / 2; next > former && renewed > wait {
		wait, text = renewed, fmt.Sprintf("a quorum is to be %d masters and not %d: waiting %%s until the daemons have renewed their locks with HOLD on all masters\n", next, former)
	}
	// A master that restarted or joined lately does not vote yet. It is not left to replace one that does.
	votes, then := c.untilVotes(c.former, ""), c.untilVotes(c.next, "")
	if len(votes) >= former && votes[former-1] <= 0 && then[next-1] > wait {
		wait, text = then[next-1], "too few masters of the new list vote yet: waiting %s until a quorum of them does\n"
	}
	if wait <= 0 {
		return nil
	}
	if err := c.group.countdown(ctx, wait, text, c.out); err != nil {
		return err
	}
	return c.read()
}
