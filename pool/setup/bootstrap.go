// Bootstrap lets a brand-new group vote at once.
//
// A blank master may have forgotten locks, so it waits until it is older than
// the longest lease. Only the operator can know that there was nothing to
// forget. The operator's assurance takes effect once, for all databases, and only while
// all masters answer and none of them has an identity: left in a unit file it does
// nothing at later restarts.
//
// A run may end half way. Then nothing has changed, or the same command completes it, by
// the marks that it leaves on the masters:
//
//  1. Every master gets the mark "prepared". It ends before a master that began an
//     incarnation after the first look could vote.
//  2. Once all have it, every master gets the mark "ready" in its place.
//  3. Once all have that, the masters get identities that may vote; then the marks go.
//
// While one master is prepared, none has got such an identity and none can have voted: what
// others have lost does not count, and a later run begins again. A master that is ready has
// lost nothing since all were blank, and the later run completes it whatever the others did.

package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"redlockd/pool"
	"redlockd/pool/admission"
	"redlockd/pool/clock"
)

// MaxFenceAbove leaves 2^32 fences below 2^52, where a register counts as damaged:
// a group that starts at the limit would not outlive its first grants.
const MaxFenceAbove = pool.MaxRegister - 1<<32

// BootstrapTerms has what an operator may give beside the masters.
type BootstrapTerms struct {
	// Force also replaces the identities that masters have already, and their memories
	// no longer count.
	Force bool
	// Once succeeds if masters have identities of these settings, and reports that nothing was changed.
	Once bool
	// FenceAbove: the registers of all databases start above it. 0 to MaxFenceAbove;
	// 0 = the clocks alone decide.
	FenceAbove int64
}

// Bootstrap lets a group of blank masters vote at once.
func Bootstrap(ctx context.Context, o pool.Options, terms BootstrapTerms, out io.Writer) error {
	if n := terms.FenceAbove; n < 0 || n > MaxFenceAbove {
		return fmt.Errorf("fence-above: %d, 0 to %d are allowed", n, int64(MaxFenceAbove))
	}
	g, err := newGroup(o, stepTimeout)
	if err != nil {
		return err
	}
	g.dial = retried(g.dial)
	all, err := g.connectAll(ctx, "bootstrap")
	defer closeAll(all)
	used := slices.ContainsFunc(all, g.hasMemory)
	switch {
	case err != nil && used:
		err = inUse{error: err}
	case err == nil && (used || terms.Force || len(all)%2 == 1):
		err = g.bootstrap(all, terms, out)
	default:
		err = cmp.Or(err, evenNumber(len(all)))
	}
	if serving := new(inUse); terms.Once && errors.As(err, serving) && !serving.foreign {
		fmt.Fprintf(out, "nothing to do: %v\n", err)
		return nil
	}
	return err
}

// inUse is the error of a bootstrap of masters that serve, or have served.
type inUse struct {
	error
	foreign bool // with other settings than those given
}

func (i inUse) Unwrap() error { return i.error }

// BootstrapIfBlank is the bootstrap of a daemon's option, once at its start. If the masters
// have identities, a line in the log suffices: they are verified as always. The error is why
// a new group has to wait for the longest lease, or for the command to be repeated.
func BootstrapIfBlank(ctx context.Context, o pool.Options) error {
	if err := o.WithDefaults(); err != nil { // pool.New reports it
		return nil
	}
	err := Bootstrap(ctx, o, BootstrapTerms{}, io.Discard)
	var used inUse
	switch {
	case err == nil:
		o.Logger.Info("bootstrapped: all masters were blank and may vote at once")
	case errors.As(err, &used):
		o.Logger.Info("--bootstrap has no effect", "err", err.Error())
		return nil
	}
	return err
}

// maxInitTries of one database are made: each daemon that runs may begin an incarnation in
// it since it was read, and again when that one is invalidated. An admission that a busy
// machine delays is refused because of its clock, and tried again.
const maxInitTries = 10

// bootstrap begins again when a mark ended before it could be replaced.
func (g *group) bootstrap(all []*candidate, terms BootstrapTerms, out io.Writer) (err error) {
	for range maxInitTries {
		b := &bootstrapping{group: g, all: all, terms: terms}
		if err = b.run(out); !errors.Is(err, errMarkLost) {
			break
		}
	}
	return err
}

type bootstrapping struct {
	group  *group
	all    []*candidate
	marked []*marks // by index of all
	terms  BootstrapTerms
}

// run first reads every database of every master, then writes.
func (b *bootstrapping) run(out io.Writer) error {
	began := b.group.options.Clock.Now()
	if err := b.look(); err != nil {
		return err
	}
	if !b.terms.Force {
		if err := b.prepare(began); err != nil {
			return err
		}
	}
	offset, existed := medianOffset(b.all), false
	for i, c := range b.all {
		if err := b.begin(i, offset); err != nil {
			return fmt.Errorf("bootstrap: master %s, %w; what was begun stands: run the same command again, which completes it", c.master.Name, err)
		}
		fmt.Fprintf(out, "master %s: may vote in databases 0-%d\n", c.master.Name, b.group.options.Databases-1)
		existed = existed || slices.ContainsFunc(c.seals, func(s sealRecord) bool { return s.identity != "" })
	}
	b.unmark()
	if above := b.terms.FenceAbove; above > 0 {
		fmt.Fprintf(out, "fences: all are above %d in databases 0-%d; a register that was higher already was kept\n", above, b.group.options.Databases-1)
	}
	if existed && b.terms.Force {
		fmt.Fprintln(out, "counters: DNEXTID answers LOSTSTATE for those that a quorum of masters has, until DIDRESEED sets them, and begins at 1 where a quorum has nothing; look at DIDS and set what was in use before clients request ids")
	}
	return nil
}

// look reads the seals, the records and the marks.
func (b *bootstrapping) look() error {
	b.marked = nil
	if err := b.group.readSeals(b.all, "bootstrap"); err != nil {
		return err
	}
	b.group.keep((&change{group: b.group, all: b.all}).newest(), io.Discard)
	for _, c := range b.all {
		m, err := b.group.readMarks(c)
		if err != nil {
			return fmt.Errorf("bootstrap: master %s: %w", c.master.Name, err)
		}
		b.marked = append(b.marked, m)
	}
	return nil
}

// prepare makes all masters ready, or changes nothing.
func (b *bootstrapping) prepare(began time.Duration) error {
	if err := checkClocks(b.all, "bootstrap"); err != nil {
		return err
	}
	resumes, fresh := false, []int(nil) // databases
	for db := range b.group.options.Databases {
		ready, err := b.mayBegin(db)
		if err != nil {
			return err
		}
		if resumes = resumes || ready; !ready {
			fresh = append(fresh, db)
		}
	}
	err := b.mark(fresh, began)
	if err == nil || errors.Is(err, errMarkLost) {
		return err
	}
	if !resumes {
		b.unmark()
	}
	return fmt.Errorf("%w; nothing was changed", err)
}

// standing has what the masters have in one database.
type standing struct {
	ready, prepared, voting int        // masters with these marks, and with an identity that may vote
	holder                  *candidate // one with an identity, if possible one that is not ready
	foreign                 error      // one serves daemons with other settings
}

func (b *bootstrapping) standing(db int) (s standing) {
	for i, c := range b.all {
		ready := b.marked[i].ready(db)
		if ready {
			s.ready++
		} else if b.marked[i].texts[db] == preparedMark {
			s.prepared++
		}
		identity := c.seals[db].identity
		if identity == "" {
			continue
		}
		if s.holder == nil || !ready {
			s.holder = c
		}
		incarnation, err := admission.ParseIdentity(identity)
		if err != nil {
			continue
		}
		if incarnation.Base == 0 {
			s.voting++
		}
		if ours := b.group.options.Fingerprint(db, c.seals[db].mark(), c.master.Name); incarnation.Fingerprint != ours {
			s.foreign = fmt.Errorf("bootstrap: master %s serves daemons with other settings in database %d: %s; nothing was changed; give this command the settings of the group, or see redlockd reconfigure", c.master.Name, db, admission.Difference(ours, incarnation.Fingerprint))
		}
	}
	return s
}

// mayBegin reports whether all masters are ready in a database; the error is why they cannot
// be made ready.
func (b *bootstrapping) mayBegin(db int) (ready bool, err error) {
	s := b.standing(db)
	switch {
	case s.foreign != nil:
		return false, inUse{s.foreign, true}
	case s.ready == len(b.all):
		return true, nil
	case s.holder == nil, s.prepared > 0 && s.voting == 0:
		return false, nil
	}
	return false, inUse{error: fmt.Errorf("bootstrap: master %s has an identity already in database %d, so locks may exist or have existed there; %d of %d masters may vote there already; nothing was changed. A group that serves needs no bootstrap; before --force, see Losing a quorum and All masters lost in the runbook", s.holder.master.Name, db, s.voting, len(b.all))}
}

// begin begins the incarnations of one master.
func (b *bootstrapping) begin(i int, offset int64) error {
	c, g := b.all[i], b.group
	present := g.present(b.all)
	for db, s := range c.seals {
		mark, err := inDB(c.link, db, "GET", g.markKey())
		if err != nil {
			return fmt.Errorf("database %d: %w", db, err)
		}
		if !b.terms.Force && mark.Str != b.marked[i].readyMark() {
			return fmt.Errorf("database %d: %w", db, errMarkLost)
		}
		floor := s.minRegister // below it daemons would take the register for one that was rolled back
		if b.terms.FenceAbove > 0 {
			floor = max(floor, b.terms.FenceAbove+1) // a higher register stays as it is
		}
		if incarnation, err := admission.ParseIdentity(s.identity); err == nil && incarnation.Base == 0 && s.register >= floor && !b.terms.Force {
			continue // an earlier run began it
		}
		r := g.request(c, db, present)
		r.Invalidate, r.Bootstrap, r.Floor = s.identity, true, floor
		if err := g.admit(c, r, offset); err != nil {
			return fmt.Errorf("database %d: %w", db, err)
		}
	}
	return nil
}

// admit admits a master by the clock whose offset is given in µs.
func (g *group) admit(c *candidate, r admission.Request, offset int64) error {
	var slow error
	for range maxInitTries {
		began := g.options.Clock.Now()
		r.Clock = clock.Micros(began) + offset
		a, err := admission.Admit(c.link, r)
		if admission.Delayed(err, g.options.Clock.Now()-began) {
			slow = err
			continue
		}
		if err != nil || a.Incarnation.Base == 0 || !r.Bootstrap {
			return err
		}
		r.Invalidate = a.Incarnation.Identity
	}
	if slow != nil {
		return slow
	}
	return errors.New("daemons begin incarnations in it again and again; stop all daemons")
}
