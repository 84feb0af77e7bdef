// Aged: an incarnation of one blank master begins because the operator requests it.
//
// A daemon begins with a blank master, or one that has come back with an older file, only after it has read on a quorum of its masters that
// its own settings are those of the group. Where too few have them, because others are blank
// or gone for good, the operator knows whether they are. The incarnation is as young as
// any other one: it votes when it has its age.

package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"redlockd/pool"
	"redlockd/pool/admission"
	"redlockd/pool/wire"
)

// BootstrapAged begins the incarnations of one blank master, given by its name or address, and
// reports to out when they vote.
func BootstrapAged(ctx context.Context, o pool.Options, master string, out io.Writer) error {
	g, err := newGroup(o, stepTimeout)
	if err != nil {
		return err
	}
	c := &change{group: g, what: "bootstrap --aged", out: io.Discard}
	defer func() { closeAll(c.all) }()
	c.follow(ctx, out)
	m, err := g.find("bootstrap --aged", master)
	if err != nil {
		return err
	}
	a := &aging{group: g}
	if err := a.reach(c, m); err != nil {
		return fmt.Errorf("bootstrap --aged: %w; nothing was changed", err)
	}
	return a.run(out)
}

type aging struct {
	group   *group
	reached []*candidate // all masters that answer and are fit
	one     *candidate   // that is to begin
}

// reach takes the masters of the list that answer; only the one has to.
func (a *aging) reach(c *change, one wire.Master) error {
	list := a.group.options.Configuration(0)
	for _, answers := range c.all {
		if has(list, answers.master.Name) {
			a.reached = append(a.reached, answers)
		}
		if answers.master.Name == one.Name {
			a.one = answers
		}
	}
	if a.one == nil {
		return fmt.Errorf("master %s=%s %s", one.Name, one.Address, c.absent[one.Name])
	}
	return distinct(a.reached, "bootstrap --aged")
}

func (a *aging) run(out io.Writer) error {
	g := a.group
	if err := g.readSeals(a.reached, "bootstrap --aged"); err != nil {
		return err
	}
	g.keep((&change{group: g, all: a.reached}).newest(), out)
	blank, err := a.mayBegin()
	if err != nil {
		return fmt.Errorf("bootstrap --aged: %w; nothing was changed", err)
	}
	_, base := highest(a.reached, 0)
	for _, db := range blank {
		if err := a.begin(db, base); err != nil {
			return fmt.Errorf("bootstrap --aged: master %s, database %d: %w; what was begun stands: run the same command again", a.one.master.Name, db, err)
		}
	}
	ahead := max(0, time.Duration(base-a.one.info.Est.At(g.options.Clock.Now()))*time.Microsecond)
	fmt.Fprintf(out, "master %s: began an incarnation in %d databases; it votes in %s\n", a.one.master.Name, len(blank), humanDuration(g.options.Age()+ahead))
	return nil
}

// mayBegin returns the databases in which the master is blank; the error is why it does not
// need the command, or must not begin.
func (a *aging) mayBegin() (blank []int, err error) {
	o := &a.group.options
	carriers := 0
	for _, c := range a.reached {
		carries := false
		for db, s := range c.seals {
			incarnation, err := admission.ParseIdentity(s.identity)
			ours := o.Fingerprint(db, s.mark(), c.master.Name)
			switch {
			case s.older:
				if c == a.one {
					blank = append(blank, db)
				}
			case err == nil && incarnation.Fingerprint != ours:
				return nil, fmt.Errorf("master %s serves daemons with other settings in database %d: %s; give this command the settings of the group, or see redlockd reconfigure", c.master.Name, db, admission.Difference(ours, incarnation.Fingerprint))
			case err == nil:
				carries = true
			case c == a.one:
				blank = append(blank, db)
			}
		}
		if carries && c != a.one {
			carriers++
		}
	}
	n := len(o.Masters)
	switch {
	case len(blank) == 0:
		return nil, fmt.Errorf("master %s is not blank: it has an identity in every database", a.one.master.Name)
	case carriers >= pool.Quorum(n):
		return nil, fmt.Errorf("%d of %d masters answer with the settings of the group, %d are needed: a daemon begins with master %s by itself", carriers, n, pool.Quorum(n), a.one.master.Name)
	case len(a.reached) == n && carriers == 0:
		return nil, errors.New("all masters are blank: run redlockd bootstrap; if they lost their memory, see All masters lost in the runbook")
	}
	return blank, nil
}

func (a *aging) begin(db int, base int64) error {
	g, c := a.group, a.one
	if err := selectDB(c.link, db); err != nil {
		return err
	}
	r := g.request(c, db, g.present(a.reached))
	r.Floor, r.MinBase = c.seals[db].minRegister, base
	return g.admit(c, r, medianOffset(a.reached))
}
