// Bootstrap lets a brand-new group vote at once.
//
// A blank master may have forgotten locks, so it waits until it is older than
// the longest lease. Only the operator can know that there was nothing to
// forget. The operator's assurance takes effect once, for all databases, and only while
// all masters answer and none of them has an identity: left in a unit file it does
// nothing at later restarts.

package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"redlockd/pool/admission"
	"redlockd/pool/clock"
	"redlockd/pool/wire"
)

// Bootstrap lets a group of blank masters vote at once. With force it also replaces the
// identities that masters have already, and their memories no longer count.
func Bootstrap(ctx context.Context, o Options, force bool, out io.Writer) error {
	if err := o.WithDefaults(); err != nil {
		return err
	}
	p := &Pool{options: o}
	p.dial = o.Dialer
	if p.dial == nil {
		p.dial = wire.DialRueidis(p.dialTimeout())
	}
	return p.bootstrap(ctx, force, out)
}

// candidate is a connected master of a command that needs all of them.
type candidate struct {
	master Master
	link   Link
	info   admission.ServerInfo
}

func (p *Pool) bootstrap(ctx context.Context, force bool, out io.Writer) error {
	all, err := p.connectAll(ctx, "bootstrap")
	defer closeAll(all)
	if err != nil {
		return err
	}
	return p.initialize(all, force, out)
}

// connectAll connects to all masters, for a command that needs all of them; the
// error names the command and the reason why it cannot run.
func (p *Pool) connectAll(ctx context.Context, what string) (all []*candidate, err error) {
	var errs []error
	for _, m := range p.options.Masters {
		link, err := p.dial(ctx, m, 0)
		if err != nil {
			errs = append(errs, fmt.Errorf("master %s: %w", m.Name, err))
			continue
		}
		c := &candidate{master: m, link: link}
		all = append(all, c)
		if c.info, err = admission.Probe(link, p.options.Clock); err != nil {
			errs = append(errs, fmt.Errorf("master %s %w", m.Name, err))
		}
	}
	if len(errs) > 0 {
		return all, fmt.Errorf("%s needs all %d masters: %w", what, len(p.options.Masters), errors.Join(errs...))
	}
	return all, distinct(all, what)
}

func closeAll(all []*candidate) {
	for _, c := range all {
		c.link.Close()
	}
}

func distinct(all []*candidate, what string) error {
	for i, a := range all {
		for _, b := range all[:i] {
			if a.info.RunID == b.info.RunID {
				return fmt.Errorf("%s: masters %s and %s are the same server (run_id %s)", what, b.master.Name, a.master.Name, a.info.RunID)
			}
		}
	}
	return nil
}

// initialize first reads every database of every master, then writes.
func (p *Pool) initialize(all []*candidate, force bool, out io.Writer) error {
	key := p.options.KeyPrefix + "redlockd:seal"
	identities := map[*candidate][]string{}
	for _, c := range all {
		for db := range p.options.Databases {
			replies := c.link.Exchange([]Command{
				{Args: []string{"SELECT", strconv.Itoa(db)}},
				{Args: []string{"ZRANGE", key, "0", "-1"}},
			}, nil)
			if err := wire.ExchangeErr(replies, 2); err != nil {
				return fmt.Errorf("bootstrap: master %s: %w", c.master.Name, err)
			}
			if err := errors.Join(replies[0].Err, replies[1].Err); err != nil {
				return fmt.Errorf("bootstrap: master %s, database %d: %w (--databases is the number in use)", c.master.Name, db, err)
			}
			identity := ""
			if len(replies[1].Items) > 0 {
				identity = replies[1].Items[0].Str
			}
			if identity != "" && !force {
				return fmt.Errorf("bootstrap: master %s has an identity already in database %d, so locks may exist or have existed there; nothing was changed. If no lock of an earlier incarnation matters: redlockd bootstrap --force", c.master.Name, db)
			}
			identities[c] = append(identities[c], identity)
		}
	}
	var least []map[string]int64 // below it daemons would take the register for one that was rolled back
	for db := range p.options.Databases {
		records, err := readAllRecords(&p.options, db, all)
		if err != nil {
			return fmt.Errorf("bootstrap: reading records in database %d: %w", db, err)
		}
		least = append(least, records)
	}
	offset, existed := medianOffset(all), false
	for _, c := range all {
		if err := p.initializeMaster(c, identities[c], least, offset, force); err != nil {
			return err
		}
		fmt.Fprintf(out, "master %s: may vote in databases 0-%d\n", c.master.Name, p.options.Databases-1)
		existed = existed || slices.ContainsFunc(identities[c], func(identity string) bool { return identity != "" })
	}
	if above := p.options.FenceAbove; above > 0 {
		fmt.Fprintf(out, "fences: all are above %d in databases 0-%d; a register that was higher already was kept\n", above, p.options.Databases-1)
	}
	if existed {
		fmt.Fprintln(out, "counters: DNEXTID answers LOSTSTATE for those that a quorum of masters has, until DIDRESEED sets them, and begins at 1 where a quorum has nothing; look at DIDS and set what was in use before clients ask")
	}
	return nil
}

func (p *Pool) initializeMaster(c *candidate, identities []string, least []map[string]int64, offset int64, force bool) error {
	for db, identity := range identities {
		g := newGroup(p, db)
		if err := wire.ExchangeErr(c.link.Exchange([]Command{{Args: []string{"SELECT", strconv.Itoa(db)}}}, nil), 1); err != nil {
			return fmt.Errorf("bootstrap: master %s: %w", c.master.Name, err)
		}
		r := admission.Request{
			Durable:    c.info.Volatile == "" || p.options.AssumeDurable && c.info.Volatile == admission.ConfigRefused,
			Invalidate: identity, Bootstrap: true, Floor: max(p.options.floor(), least[db][c.master.Name]),
		}
		if err := g.initialize(c, r, offset, force); err != nil {
			return fmt.Errorf("bootstrap: master %s, database %d: %w", c.master.Name, db, err)
		}
	}
	return nil
}

// floor is the lowest register that FenceAbove allows: fences are above it. A
// higher register stays as it is, for registers never fall.
func (o *Options) floor() int64 {
	if o.FenceAbove == 0 {
		return 0
	}
	return o.FenceAbove + 1
}

// maxInitTries of one database are made: each daemon that runs may begin an incarnation in
// it since it was read, and again when that one is invalidated. An admission that a busy
// machine delays is refused because of its clock, and tried again.
const maxInitTries = 10

// initialize admits a master by the clock whose offset is given in µs.
func (g *Group) initialize(c *candidate, r admission.Request, offset int64, force bool) error {
	var slow error
	for range maxInitTries {
		began := g.pool.options.Clock.Now()
		r.Clock = clock.Micros(began) + offset
		a, err := g.admit(c.link, c.master.Name, r)
		if admission.Delayed(err, g.pool.options.Clock.Now()-began) {
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

func medianOffset(all []*candidate) int64 {
	var offsets []int64
	for _, c := range all {
		offsets = append(offsets, c.info.Est.Offset)
	}
	slices.Sort(offsets)
	return offsets[(len(offsets)-1)/2]
}
