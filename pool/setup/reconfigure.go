// Reconfigure gives a group another list of masters, other limits or another version.
//
// If only the list changes, rename.go does it while the daemons serve. This file has the other way, in
// which nothing is granted for a while. Each change has the next epoch.
//
// The fingerprint in every identity keeps daemons with different settings from
// sharing masters. Replacing it is safe under three conditions, which are checked:
//
//  1. All masters of the new list answer, and each identity is replaced by
//     compare-and-set.
//  2. The daemons with the former settings cannot find a quorum afterwards: of
//     their N masters fewer than a quorum are left outside of the new list. A
//     minority of the masters can be replaced at a time.
//  3. No master votes until the leases of the former settings are over: every
//     incarnation begins now, and if the former limits were longer, as much later as
//     they were. What is left of the clocks' and the writing's unevenness is in the
//     two seconds that every age has in reserve.
//
// A memory that was not broken keeps its incarnation id, and so its counters stay trusted,
// if every new quorum of such masters shares one with every former quorum. Where the slots
// change, it does not: a counter that comes back to its group would have the value that it had. A master
// that was away and carries the new settings from an earlier time may have missed
// anything: it never keeps its incarnation id.

package setup

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"redlockd/pool"
	"redlockd/pool/admission"
	"redlockd/pool/clock"
)

//go:embed reconfigure.lua
var reconfigureScript string

const (
	// writingTime is how far apart the first and the last identity may be written;
	// beyond it they are written once more.
	maxWritingTime  = 500 * time.Millisecond
	maxWritingTries = 3
)

// ChangeTerms has what an operator accepts.
type ChangeTerms struct {
	Force  bool // no daemon with other settings runs any more
	Absent bool // masters may join that do not answer yet
}

// Reconfigure puts the options in force on their masters.
func Reconfigure(ctx context.Context, o pool.Options, terms ChangeTerms, out io.Writer) error {
	g, err := newGroup(o, stepTimeout)
	if err != nil {
		return err
	}
	if !terms.Force {
		if done, err := g.rename(ctx, terms, out); done || err != nil {
			return err
		}
	}
	all, err := g.connectAll(ctx, "reconfigure")
	defer closeAll(all)
	if err != nil {
		return err
	}
	if err := checkClocks(all, "reconfigure"); err != nil {
		return err
	}
	r := &reconfiguration{group: g, all: all, force: terms.Force}
	return r.run(ctx, out)
}

type reconfiguration struct {
	group *group
	all   []*candidate
	force bool

	former   settings // that the masters carry and that are to be replaced; nil if there are none
	carriers []*candidate
	mixed    bool // not all of them carry the same
	keepIDs  bool // carriers keep their incarnation ids
	current  int  // masters that carry the new settings already
	epoch    int64
}

func (r *reconfiguration) run(ctx context.Context, out io.Writer) error {
	if err := r.group.readSeals(r.all, "reconfigure"); err != nil {
		return err
	}
	newest := (&change{group: r.group, all: r.all}).newest()
	r.group.keep(newest, out)
	if err := r.findFormer(); err != nil {
		return err
	}
	if r.former == nil && !r.force {
		if r.current == 0 {
			return errors.New("reconfigure: no master carries an identity, so there is nothing to change; for a new group: redlockd bootstrap")
		}
		fmt.Fprintln(out, "these settings are in force already; nothing was changed")
		return nil
	}
	shift, err := r.shift()
	if err != nil {
		return err
	}
	if err := r.share(ctx, newest, out); err != nil {
		return err
	}
	r.epoch = r.nextEpoch()
	for range maxWritingTries {
		began := r.group.options.Clock.Now()
		if err := r.write(shift); err != nil {
			return err
		}
		if r.group.options.Clock.Now()-began <= maxWritingTime {
			wait := r.group.options.Age() + shift
			fmt.Fprintf(out, "%d masters begin a new incarnation in databases 0-%d; they vote in %s\n", len(r.all), r.group.options.Databases-1, humanDuration(wait))
			return nil
		}
	}
	return fmt.Errorf("reconfigure: writing to all masters took longer than %s, %d times: the settings are in force, but run it again when masters and network are quick, before any daemon starts", maxWritingTime, maxWritingTries)
}

// share: masters that keep their ids although the list changes, too, must have what a quorum of the
// former list remembers, as before a change of the list alone.
func (r *reconfiguration) share(ctx context.Context, newest admission.StoredConfiguration, out io.Writer) error {
	former, next := newest.Now, r.group.options.Configuration(0)
	if former == nil || !r.keepIDs || r.force || former.SameMasters(next) {
		return nil
	}
	g := *r.group
	g.options.MaxTTL, g.options.MaxKeep = former.MaxTTL, former.MaxKeep
	next.MapVersion = former.MapVersion
	_, err := (&change{group: &g, out: out, all: r.all, former: former, next: next}).share(ctx, former)
	return err
}

// nextEpoch is above all that the masters carry.
func (r *reconfiguration) nextEpoch() int64 {
	next := int64(1)
	for _, c := range r.all {
		for _, s := range c.seals {
			next = max(next, admission.EpochOf(s.mark())+1)
		}
	}
	return next
}

// findFormer finds the former settings and checks that their daemons are left without a
// quorum.
func (r *reconfiguration) findFormer() error {
	now := parseSettings("- - 0 0 " + r.group.options.Fingerprint(0, "", ""))
	for _, c := range r.all {
		carries, err := r.carried(c)
		switch {
		case err != nil:
			return err
		case carries == nil:
			continue
		case maps.Equal(carries, now):
			r.current++
			continue
		}
		r.mixed = r.mixed || r.former != nil && !maps.Equal(r.former, carries)
		if r.mixed && !r.force {
			return fmt.Errorf("reconfigure: masters %s and %s carry different settings (%s, and %s), so one of them has been away; nothing was changed. Delete redlockd:seal in every database of the one that was, or stop all daemons and run redlockd reconfigure --force",
				r.carriers[0].master.Name, c.master.Name, r.former.text(), carries.text())
		}
		if r.former == nil {
			r.former = carries
		}
		r.carriers = append(r.carriers, c)
	}
	return r.checkQuorum(now)
}

// carried are a master's settings, the same in all databases; nil for none.
func (r *reconfiguration) carried(c *candidate) (settings, error) {
	var carries settings
	for db, s := range c.seals {
		one := parseSettings(s.identity)
		switch {
		case len(one) == 0:
		case one["group"] != r.group.options.Group && !r.force:
			return nil, fmt.Errorf("reconfigure: master %s belongs to group %q in database %d; nothing was changed. If that group is no more: redlockd reconfigure --force", c.master.Name, one["group"], db)
		case one["slots"] != r.group.options.Slots && !r.force:
			return nil, fmt.Errorf("reconfigure: group %s has the slots %s here and %s on master %s; nothing was changed. Slots change their group by redlockd slots move",
				r.group.options.Group, orAll(r.group.options.Slots), orAll(one["slots"]), c.master.Name)
		case carries != nil && !maps.Equal(carries, one) && !r.force:
			return nil, fmt.Errorf("reconfigure: master %s carries different settings in its databases; nothing was changed. Stop all daemons and run redlockd reconfigure --force", c.master.Name)
		default:
			carries = one
		}
	}
	return carries, nil
}

// checkQuorum checks condition 2 of the file's head.
func (r *reconfiguration) checkQuorum(now settings) error {
	if r.former == nil {
		return nil
	}
	n := r.former.number()
	left := n - len(r.carriers)
	if left >= pool.Quorum(n) && !r.force {
		return fmt.Errorf("reconfigure: only %d of the %d masters of the former list are in the new one, so daemons with the former list could still find a quorum of %d; nothing was changed. Replace a minority at a time, or stop all daemons and run redlockd reconfigure --force",
			len(r.carriers), n, pool.Quorum(n))
	}
	r.keepIDs = !r.mixed && r.former["format"] == now["format"] && r.former["group"] == r.group.options.Group && r.former["slots"] == now["slots"] &&
		left < pool.Quorum(n) && pool.Quorum(len(r.all))+pool.Quorum(n) > n
	return nil
}

// shift is how much longer the leases and records of the former settings may last
// than those of the new ones. What an earlier change demands still holds.
func (r *reconfiguration) shift() (time.Duration, error) {
	var longest time.Duration
	now := r.group.options.Clock.Now()
	for _, c := range r.all {
		for _, s := range c.seals {
			print := parseSettings(s.identity)
			if len(print) == 0 {
				continue
			}
			ttl, err1 := print.duration("max-ttl")
			keep, err2 := print.duration("max-keep")
			if err := errors.Join(err1, err2); err != nil {
				return 0, err
			}
			var ahead time.Duration
			if incarnation, err := admission.ParseIdentity(s.identity); err == nil { // otherwise it was invalidated
				ahead = max(0, time.Duration(incarnation.Base-c.info.Est.At(now))*time.Microsecond)
			}
			o := &r.group.options
			more := max(ttl-o.MaxTTL, ttl+keep-o.MaxTTL-o.MaxKeep)
			longest = max(longest, ahead+more+max(0, more)/100)
		}
	}
	return longest, nil
}

// write begins the new incarnations, in all databases of all masters, and stores their
// identities, so that it can be repeated. Masters with the former settings come last: if
// it is interrupted before, their daemons work on, and it can be run again.
func (r *reconfiguration) write(shift time.Duration) error {
	order := append(slices.DeleteFunc(slices.Clone(r.all), func(c *candidate) bool { return slices.Contains(r.carriers, c) }), r.carriers...)
	for i, c := range order {
		inForce := len(order)-1-i < pool.Quorum(len(order)) // those that are left are no quorum
		for db := range r.group.options.Databases {
			register, _ := highest(r.all, db)
			identity, err := r.writeOne(c, db, max(register, c.seals[db].minRegister), shift, inForce)
			if err != nil {
				return fmt.Errorf("reconfigure: master %s, database %d: %w", c.master.Name, db, err)
			}
			c.seals[db].identity = identity
		}
	}
	return nil
}

func (r *reconfiguration) writeOne(c *candidate, db int, floor int64, shift time.Duration, inForce bool) (string, error) {
	o, s := &r.group.options, &c.seals[db]
	of := admission.StoredConfiguration{Now: o.Configuration(r.epoch), InForce: inForce}
	keeps := r.keepIDs && slices.Contains(r.carriers, c) && s.register >= s.minRegister // else it was rolled back
	reply, err := inDB(c.link, db, "EVAL", reconfigureScript, "2", r.group.sealKey(), admission.ConfigurationKey,
		s.identity, o.Fingerprint(db, of.Now.Mark(), c.master.Name), admission.NewIncarnationID(), admission.Bit(keeps),
		admission.Bit(c.info.Durable(o.AssumeDurable)), strconv.FormatInt(clock.Micros(shift), 10), strconv.FormatInt(floor, 10),
		of.Texts(), o.Group)
	if err != nil {
		return "", err
	}
	items := reply.Items
	switch {
	case len(items) == 2 && items[0].Str == "OK":
		return items[1].Str, nil
	case len(items) == 2 && items[0].Str == "CHANGED":
		return "", fmt.Errorf("its identity changed meanwhile (now %q), because a daemon admitted it anew; run the same command again", items[1].Str)
	}
	return "", errors.New("the script answered something unexpected")
}
