// Share: a change of the masters gives each master of the list what a quorum remembers of counters and
// works, and the highest register. Without that a list could, after some changes, consist of masters
// that missed it: new ones, and those that were a minority when it was acknowledged.
//
//  1. Before the change: masters of the former list get what a quorum of it remembers. So what was
//     acknowledged under earlier lists is on a quorum of the former one, as if it were its own.
//  2. Once the change is in force, nothing is acknowledged under the former list any more. Quorums of
//     both lists meet, so a quorum of the next one that remembers has all of it. It is read there, and
//     given to all masters of the next list.
//
// A master that has got it knows all there was: of a counter or a record that is not there, it knows
// that nobody had it. What is acknowledged later meets each quorum as ever. Daemons may ask a master
// meanwhile: of two values the higher one stays.
//
// A master that lost its memory may have had a part in what is not acknowledged yet. So it gets it when
// it votes again: by then that is over. One that the change adds has never voted under the next list.

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
	"redlockd/redlock/slots"
)

// sharing is that of the masters of a list.
type sharing struct {
	*memories
	change *change
}

// maxShares bounds how often it begins again because a daemon has admitted a master meanwhile.
const maxShares = 10

// share gives the masters of a list, the former or the next one, what a quorum of it remembers, and
// returns the names of those that did not know it before.
func (c *change) share(ctx context.Context, of *admission.Configuration) (learned []string, err error) {
	if c.former.MapVersion != c.next.MapVersion {
		return nil, nil // a change of slots: the masters stay
	}
	m := &sharing{&memories{group: c.group, all: c.all, what: c.command(), of: of, marks: []string{of.Mark()}, ranges: slots.All()}, c}
	if of == c.former {
		for _, lost := range c.lostChanges() {
			m.marks = append(m.marks, lost.Mark())
		}
	}
	for range maxShares {
		all, wait, err := m.shareOnce(ctx, &learned)
		switch {
		case errors.Is(err, errChanged): // a daemon has admitted it
		case err != nil:
			return learned, err
		case wait <= 0:
			if len(learned) > 0 {
				fmt.Fprintf(c.out, "%s: has what the others know of ids and work, %s\n", strings.Join(learned, ", "), all.text())
			}
			return learned, nil
		default:
			text := "ids and work: waiting %s until masters that forgot them vote, and can be given them\n"
			if err := c.group.countdown(ctx, wait, text, c.out); err != nil {
				return learned, err
			}
		}
		if err := c.read(); err != nil {
			return learned, err
		}
	}
	return learned, fmt.Errorf("%s: the masters were admitted again and again while their memories were read; run the same command again", c.command())
}

// shareOnce does so in all databases, with the masters that can be given it now; wait is in how long
// others can that must.
func (sg *sharing) shareOnce(ctx context.Context, learned *[]string) (all carried, wait time.Duration, err error) {
	for db := range sg.group.options.Databases {
		if !used(sg.all, db) {
			continue
		}
		of, err := sg.readDB(db)
		if err == nil {
			err = sg.mayForget(db, &of)
		}
		if err != nil {
			return nil, 0, err
		}
		rest, err := sg.shareDB(db, &of, learned)
		if err != nil {
			return nil, 0, err
		}
		wait, all = max(wait, rest), append(all, of)
	}
	return all, wait, ctx.Err()
}

// shareDB does so in one database.
func (sg *sharing) shareDB(db int, of *carriedDB, learned *[]string) (wait time.Duration, err error) {
	knows := of.knows()
	var waits []time.Duration // of those that stay, or that must have it
	for _, one := range sg.all {
		incarnation := sg.incarnation(one, db)
		if incarnation == nil {
			continue
		}
		lacks := knows != "" && !incarnation.Works || knows == admission.KnowsAll && !incarnation.Counters
		rest := sg.untilSettled(one, db, incarnation)
		if !lacks {
			rest = 0
		}
		if rest <= 0 {
			if err := sg.installDB(one, db, of, knows); err != nil {
				return 0, fmt.Errorf("%s: master %s, database %d: %w", sg.what, one.master.Name, db, err)
			}
			if lacks && !slices.Contains(*learned, one.master.Name) {
				*learned = append(*learned, one.master.Name)
			}
		}
		if sg.mustLearn(one) {
			waits = append(waits, rest)
		}
	}
	slices.Sort(waits)
	needed := len(waits)
	if sg.of == sg.change.former && !sg.change.inForce { // so many must remember it, so that the others can be given it
		needed = pool.Quorum(len(sg.change.next.Masters))
	}
	if needed == 0 || needed > len(waits) || knows == "" && of.known() == 0 { // nothing is there to be lost
		return 0, nil
	}
	return waits[needed-1], nil
}

// knows is what a master knows once it has been given all of this, see carry.lua.
func (c *carriedDB) knows() string {
	switch {
	case c.noWorks:
		return ""
	case c.forgot:
		return admission.KnowsWorks
	}
	return admission.KnowsAll
}

// known counts the counters of which a quorum is sure.
func (c *carriedDB) known() (n int) {
	for _, value := range c.values {
		if len(value) == 1 {
			n++
		}
	}
	return n
}

// mustLearn reports whether the change goes on only when a master knows it: before, those that stay;
// then the new ones. Others get it if they can.
func (sg *sharing) mustLearn(one *candidate) bool {
	if sg.of == sg.change.former {
		return has(sg.change.next, one.master.Name)
	}
	return sg.change.inForce || !has(sg.change.former, one.master.Name)
}

// untilSettled is in how long nothing is under way any more in which a master had a part that it may
// have forgotten.
func (sg *sharing) untilSettled(one *candidate, db int, of *admission.Incarnation) time.Duration {
	if sg.of == sg.change.next && !has(sg.change.former, one.master.Name) && sg.isFresh(db) {
		return 0
	}
	return sg.untilAged(one, of, sg.group.options.Age())
}

// isFresh reports whether the next configuration is in force for less than the longest lease. So a new
// master cannot have voted under it.
func (sg *sharing) isFresh(db int) bool {
	for _, one := range sg.all {
		s := &one.seals[db]
		if has(sg.change.former, one.master.Name) && s.mark() == sg.change.next.Mark() && s.carriesStored() {
			age := time.Duration(one.info.Est.At(sg.group.options.Clock.Now())-s.stored.At) * time.Microsecond
			if age >= sg.group.options.Age()-2*admission.MaxSkew {
				return false
			}
		}
	}
	return true
}

// mayForget refuses a change after which ids would be lost that masters which are away may remember.
func (sg *sharing) mayForget(db int, of *carriedDB) error {
	if sg.of != sg.change.former || len(of.lost) == 0 || sg.change.terms.Force {
		return nil
	}
	away := 0
	for _, master := range sg.change.former.Masters {
		if !slices.ContainsFunc(sg.all, func(one *candidate) bool { return one.master.Name == master.Name && !one.seals[db].older }) {
			away++
		}
	}
	if away == 0 {
		return nil // the change makes nothing worse
	}
	return fmt.Errorf("%s: %s", sg.what, lostText(of.lost, "nothing was changed"))
}
