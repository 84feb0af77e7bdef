// Masters: masters join and leave a group. The list that results is computed from the one that
// the masters carry, and reconfigure.go puts it in force.

package setup

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"redlockd/pool"
	"redlockd/pool/admission"
	"redlockd/pool/clock"
	"redlockd/pool/wire"
)

// MastersChange has the masters that join and leave, by name or address.
type MastersChange struct {
	Join  []wire.Master
	Leave []string
}

// ChangeMasters puts a change in force. The masters of the options only show where to read the
// present list. They may be older than it, and one of them has to answer.
func ChangeMasters(ctx context.Context, o pool.Options, change MastersChange, terms ChangeTerms, out io.Writer) error {
	g, err := newGroup(o, stepTimeout)
	if err != nil {
		return err
	}
	present, err := g.presentList(ctx)
	if err != nil {
		return err
	}
	g.keep(present, io.Discard) // Reconfigure reports it
	if err := g.sameAsThere(present.Now); err != nil && !terms.Force {
		return err
	}
	if o.Masters, err = g.listAfter(change, present); err != nil {
		return err
	}
	o.Prefixes = present.Now.Prefixes // the file may be older
	fmt.Fprintf(out, "epoch %d has the masters %s; the new list is %s\n", present.Now.Epoch, g.options.Names(present.Now), o.Names(o.Configuration(0)))
	return Reconfigure(ctx, o, terms, out)
}

// PresentMasters are the masters that a group has now, and the list for people. Where nothing in
// force can be read they are those of the options.
func PresentMasters(ctx context.Context, o pool.Options) ([]wire.Master, string) {
	if g, err := newGroup(o, stepTimeout); err == nil {
		if present, err := g.presentList(ctx); err == nil && present.InForce {
			o.Masters = present.Now.Masters
		}
	}
	return o.Masters, o.Names(o.Configuration(0))
}

// AwaitVotes waits until the masters that answer vote, and shows how long that takes. The masters of
// the options may be older than the present list.
func AwaitVotes(ctx context.Context, o pool.Options, out io.Writer) error {
	g, err := newGroup(o, stepTimeout)
	if err != nil {
		return err
	}
	c := &change{group: g, out: out}
	defer func() { closeAll(c.all) }()
	if _, err := c.present(ctx); err != nil {
		return err
	}
	_, base := highest(c.all, 0)
	now := clock.Micros(g.options.Clock.Now()) + medianOffset(c.all)
	wait := time.Duration(base-now)*time.Microsecond + g.options.Age()
	if err := g.countdown(ctx, wait, "waiting %s until all masters vote\n", out); err != nil {
		return err
	}
	if err := c.awaitWork(ctx); err != nil {
		return err
	}
	fmt.Fprintln(out, "all masters that answer vote")
	return nil
}

// awaitWork waits until a quorum votes on new work.
func (c *change) awaitWork(ctx context.Context) error {
	now := c.newest().Now
	m := &memories{group: c.group, all: c.all, of: now, marks: []string{now.Mark()}}
	for db := range c.group.options.Databases {
		var waits []time.Duration
		for _, one := range c.all {
			if incarnation := m.incarnation(one, db); incarnation != nil {
				waits = append(waits, m.untilKnows(one, incarnation))
			}
		}
		slices.Sort(waits)
		n, needed := len(now.Masters), pool.Quorum(len(now.Masters))
		if len(waits) < needed || waits[needed-1] <= 0 {
			continue
		}
		may := slices.IndexFunc(waits, func(wait time.Duration) bool { return wait > 0 })
		text := fmt.Sprintf("work, database %d: %d of %d masters may vote on new work: waiting %%s until %d may\n", db, may, n, needed)
		if err := c.group.countdown(ctx, waits[needed-1], text, c.out); err != nil {
			return err
		}
	}
	return nil
}

// presentList is the newest configuration that the masters carry.
func (g *group) presentList(ctx context.Context) (newest admission.StoredConfiguration, err error) {
	c := &change{group: g, out: io.Discard} // Reconfigure reports what it does not reach
	defer func() { closeAll(c.all) }()
	return c.present(ctx)
}

// present reads the masters of the options, and those of the newest configuration that they carry.
func (c *change) present(ctx context.Context) (newest admission.StoredConfiguration, err error) {
	g := c.group
	c.connect(ctx, g.options.Masters)
	if err := c.read(); err != nil {
		return newest, err
	}
	if newest = c.newest(); newest.Now == nil {
		return newest, fmt.Errorf("masters: %d of %d masters answer, and none has a configuration of group %q; nothing was changed. A new group begins with redlockd bootstrap, one of another version changes by redlockd reconfigure",
			len(c.all), len(g.options.Masters), g.options.Group)
	}
	c.connect(ctx, newest.Now.Masters) // a change may have passed the masters of the options by
	if err := c.read(); err != nil {
		return newest, err
	}
	return c.newest(), nil
}

// follow puts the list that is in force in the place of that of the options, which may be older.
func (c *change) follow(ctx context.Context, out io.Writer) {
	g := c.group
	present, err := c.present(ctx)
	if err != nil || !present.InForce || g.options.Configuration(0).SameLists(present.Now) {
		return
	}
	if o, err := g.apply(MastersChange{}, present.Now); err == nil {
		fmt.Fprintf(out, "epoch %d has the masters %s: this list counts, not that of the settings\n", present.Now.Epoch, g.options.Names(present.Now))
		g.options.Masters, g.options.Prefixes = o.Masters, present.Now.Prefixes
	}
}

// sameAsThere is nil if nothing but the list differs. Otherwise the change would end all votes
// for a while.
func (g *group) sameAsThere(now *admission.Configuration) error {
	here := g.options.Configuration(now.Epoch)
	if here.SameSettings(now) && here.SameSlots(now) {
		return nil
	}
	var differ []string
	ours, theirs := strings.Fields(here.String()), strings.Fields(now.String())
	for i := range max(len(ours), len(theirs)) {
		a, b := fieldAt(ours, i), fieldAt(theirs, i)
		if a != b && !strings.HasPrefix(a, "masters=") {
			differ = append(differ, a+" here and "+b+" there")
		}
	}
	return fmt.Errorf("masters: the settings are not those on the masters: %s; nothing was changed. This command changes the list alone: give it the settings of the daemons, or change them first by redlockd reconfigure", strings.Join(differ, ", "))
}

// fieldAt is a field of a configuration; the last one may be left out.
func fieldAt(fields []string, i int) string {
	if i < len(fields) {
		return fields[i]
	}
	return "slots=all"
}

// listAfter is the list after the change. A change that was begun before leads to the same list
// again, so that the same command finishes it.
func (g *group) listAfter(change MastersChange, present admission.StoredConfiguration) ([]wire.Master, error) {
	if present.Former != nil {
		if again, err := g.apply(change, present.Former); err == nil && again.Configuration(0).SameMasters(present.Now) && change.joined(present.Now) {
			return again.Masters, nil
		}
	}
	if !present.InForce {
		return nil, fmt.Errorf("masters: a change to epoch %d is unfinished, and another one must not replace it; nothing was changed. First finish it: %s", present.Now.Epoch, g.finishCommand(present))
	}
	after, err := g.apply(change, present.Now)
	return after.Masters, err
}

// joined reports whether what joins is there, under the same address.
func (change *MastersChange) joined(now *admission.Configuration) bool {
	return !slices.ContainsFunc(change.Join, func(joins wire.Master) bool {
		return !slices.ContainsFunc(now.Masters, func(m wire.Master) bool { return m.Name == joins.Name && m.Address == joins.Address })
	})
}

// apply returns the options with the list that results.
func (g *group) apply(change MastersChange, of *admission.Configuration) (pool.Options, error) {
	o := g.options
	o.Masters = nil
	for _, m := range of.Masters {
		if i := slices.IndexFunc(g.options.Masters, func(own wire.Master) bool { return own.Name == m.Name }); i >= 0 {
			m = g.options.Masters[i]
		}
		o.Masters = append(o.Masters, g.withLogin(m))
	}
	for _, joins := range change.Join {
		if err := joinable(joins, o.Masters); err != nil {
			return o, err
		}
	}
	for _, name := range change.Leave {
		i := slices.IndexFunc(o.Masters, func(m wire.Master) bool { return m.Name == name || m.Address == name })
		if i < 0 {
			return o, fmt.Errorf("masters: %q is the name or address of no master; nothing was changed; allowed: %s (epoch %d)", name, g.options.Names(of), of.Epoch)
		}
		o.Masters = slices.Delete(o.Masters, i, i+1)
	}
	for _, joins := range change.Join {
		o.Masters = append(o.Masters, g.withLogin(joins))
	}
	if err := o.WithDefaults(); err != nil {
		return o, fmt.Errorf("%w; nothing was changed. To put a master in the place of another one: redlockd masters replace OLD NEW=ADDRESS", err)
	}
	return o, nil
}

// withLogin gives a master without a login that of the first one, as daemons that follow do.
func (g *group) withLogin(m wire.Master) wire.Master {
	if m.Username == "" && m.Password == "" && m.TLS == nil {
		return m.WithLoginOf(g.options.Masters[0])
	}
	return m
}

// joinable is nil if no master of the list has the name or the address.
func joinable(joins wire.Master, list []wire.Master) error {
	for _, m := range list {
		switch {
		case m.Name == joins.Name && m.Address == joins.Address:
			return fmt.Errorf("masters: %s=%s is in the list already; nothing was changed", m.Name, m.Address)
		case m.Name == joins.Name:
			return fmt.Errorf("masters: a master is called %s already, at %s; nothing was changed. Give the new one another name; another server under the same name needs no change of the list, see Replacing a master in the runbook", m.Name, m.Address)
		case m.Address == joins.Address:
			return fmt.Errorf("masters: %s is the address of master %s; nothing was changed. A server has one vote: list it once", joins.Address, m.Name)
		}
	}
	return nil
}
