// Bootstrap lets a brand-new group vote at once.
//
// A blank master may have forgotten locks, so it waits until it is older than
// the longest lease. Only the operator can know that there was nothing to
// forget. The operator's assurance takes effect once, for all databases, and only while
// all masters answer and none of them has an identity: left in a unit file it does
// nothing at later restarts.

package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"redlockd/pool"
	"redlockd/pool/admission"
	"redlockd/pool/clock"
	"redlockd/pool/wire"
)

// MaxFenceAbove leaves 2^32 fences below 2^52, where a register counts as damaged:
// a group that starts at the limit would not outlive its first grants.
const MaxFenceAbove = pool.MaxRegister - 1<<32

// BootstrapTerms are what an operator may give beside the masters.
type BootstrapTerms struct {
	// Force also replaces the identities that masters have already, and their memories
	// no longer count.
	Force bool
	// FenceAbove: the registers of all databases start above it. 0 to MaxFenceAbove;
	// 0 = the clocks alone decide.
	FenceAbove int64
}

// Bootstrap lets a group of blank masters vote at once.
func Bootstrap(ctx context.Context, o pool.Options, terms BootstrapTerms, out io.Writer) error {
	return bootstrap(ctx, o, stepTimeout, terms, out)
}

func bootstrap(ctx context.Context, o pool.Options, timeout time.Duration, terms BootstrapTerms, out io.Writer) error {
	if n := terms.FenceAbove; n < 0 || n > MaxFenceAbove {
		return fmt.Errorf("fence-above: %d, 0 to %d are allowed", n, int64(MaxFenceAbove))
	}
	g, err := newGroup(o, timeout)
	if err != nil {
		return err
	}
	all, err := g.connectAll(ctx, "bootstrap")
	defer closeAll(all)
	if err != nil {
		return err
	}
	return g.bootstrap(all, terms, out)
}

// BootstrapIfBlank is the bootstrap of a daemon's option, once at its start. If it has no
// effect, a line in the log suffices: the masters are verified as always.
func BootstrapIfBlank(o pool.Options) {
	if err := o.WithDefaults(); err != nil { // pool.New reports it
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*o.DialTimeout())
	defer cancel()
	if err := bootstrap(ctx, o, 0, BootstrapTerms{}, io.Discard); err != nil {
		o.Logger.Info("--bootstrap has no effect", "err", err.Error())
		return
	}
	o.Logger.Info("bootstrapped: all masters were blank and may vote at once")
}

// bootstrap first reads every database of every master, then writes.
func (g *group) bootstrap(all []*candidate, terms BootstrapTerms, out io.Writer) error {
	err := g.readSeals(all, "bootstrap: master %s, database %d: %w (--databases is the number in use)", "bootstrap: reading records in database %d: %w")
	if err != nil {
		return err
	}
	for _, c := range all {
		for db, s := range c.seals {
			if s.identity != "" && !terms.Force {
				return fmt.Errorf("bootstrap: master %s has an identity already in database %d, so locks may exist or have existed there; nothing was changed. If no lock of an earlier incarnation matters: redlockd bootstrap --force", c.master.Name, db)
			}
		}
	}
	offset, existed := medianOffset(all), false
	present := g.present(all)
	for _, c := range all {
		if err := g.bootstrapMaster(c, present, offset, terms); err != nil {
			return err
		}
		fmt.Fprintf(out, "master %s: may vote in databases 0-%d\n", c.master.Name, g.options.Databases-1)
		existed = existed || slices.ContainsFunc(c.seals, func(s sealRecord) bool { return s.identity != "" })
	}
	if above := terms.FenceAbove; above > 0 {
		fmt.Fprintf(out, "fences: all are above %d in databases 0-%d; a register that was higher already was kept\n", above, g.options.Databases-1)
	}
	if existed {
		fmt.Fprintln(out, "counters: DNEXTID answers LOSTSTATE for those that a quorum of masters has, until DIDRESEED sets them, and begins at 1 where a quorum has nothing; look at DIDS and set what was in use before clients ask")
	}
	return nil
}

func (g *group) bootstrapMaster(c *candidate, present admission.StoredConfiguration, offset int64, terms BootstrapTerms) error {
	for db, s := range c.seals {
		if _, err := wire.AskOne(c.link, "SELECT", strconv.Itoa(db)); err != nil {
			return fmt.Errorf("bootstrap: master %s: %w", c.master.Name, err)
		}
		floor := s.minRegister // below it daemons would take the register for one that was rolled back
		if terms.FenceAbove > 0 {
			floor = max(floor, terms.FenceAbove+1) // a higher register stays as it is
		}
		r := g.request(c, db, present)
		r.Invalidate, r.Bootstrap, r.Floor = s.identity, true, floor
		if err := g.admit(c, r, offset, terms.Force); err != nil {
			return fmt.Errorf("bootstrap: master %s, database %d: %w", c.master.Name, db, err)
		}
	}
	return nil
}

// maxInitTries of one database are made: each daemon that runs may begin an incarnation in
// it since it was read, and again when that one is invalidated. An admission that a busy
// machine delays is refused because of its clock, and tried again.
const maxInitTries = 10

// admit admits a master by the clock whose offset is given in µs.
func (g *group) admit(c *candidate, r admission.Request, offset int64, force bool) error {
	var slow error
	for range maxInitTries {
		began := g.options.Clock.Now()
		r.Clock = clock.Micros(began) + offset
		a, err := admission.Admit(c.link, r)
		if admission.Delayed(err, g.options.Clock.Now()-began) {
			slow = err
			continue
		}
		if err != nil || a.Incarnation.Base == 0 {
			return err
		}
		if !force {
			break
		}
		r.Invalidate = a.Incarnation.Identity
	}
	if slow != nil {
		return slow
	}
	return errors.New("a daemon has begun an incarnation in it meanwhile; stop all daemons and run redlockd bootstrap --force")
}
