// Quarantine: the incarnations of one master end, because an operator replaced its files.

package setup

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"redlockd/pool"
	"redlockd/pool/admission"
	"redlockd/pool/wire"
)

// Quarantine ends the incarnations of one master, given by its name or address,
// and reports to out what it ended and how long the master does not vote. Without force it
// leaves a master alone without which too few vote.
func Quarantine(ctx context.Context, o pool.Options, master string, force bool, out io.Writer) error {
	g, err := newGroup(o, stepTimeout)
	if err != nil {
		return err
	}
	c := &change{group: g, what: "quarantine", out: io.Discard}
	defer func() { closeAll(c.all) }()
	c.follow(ctx, out)
	m, err := g.find("quarantine", master)
	if err != nil {
		return err
	}
	link, err := g.dial(ctx, m, 0)
	if err != nil {
		return fmt.Errorf("quarantine: master %s, at %s: %w; nothing was changed", m.Name, m.Address, err)
	}
	defer link.Close()
	if !force {
		if err := c.expendable(&candidate{master: m, link: link}); err != nil {
			return err
		}
	}
	all, err := admission.EndIncarnations(link, g.sealKey(), true)
	if err != nil {
		return fmt.Errorf("quarantine: master %s: %w", m.Name, err)
	}
	for _, e := range all {
		// The daemons that admit it may run with other limits than this process.
		if ttl, err := parseSettings(e.Identity).duration("max-ttl"); err == nil {
			g.options.MaxTTL = max(g.options.MaxTTL, ttl)
		}
	}
	if len(all) == 0 {
		if err := g.retired(&candidate{master: m, link: link}); err != nil {
			return err
		}
		fmt.Fprintf(out, "master %s: it has no incarnation in any database; nothing was changed\n", m.Name)
	} else {
		fmt.Fprintf(out, "master %s: ended its incarnation in databases %s\n", m.Name, admission.Databases(all))
	}
	fmt.Fprintf(out, "master %s: it does not vote for %s from its next admission; a daemon that runs admits it at once (DMASTERS: quarantined)\n", m.Name, humanDuration(g.options.Age()))
	return nil
}

// retired is nil if an incarnation of the master has been ended, and no other one has begun.
func (g *group) retired(one *candidate) error {
	if err := g.readSeals([]*candidate{one}, "quarantine"); err != nil {
		return err
	}
	if slices.ContainsFunc(one.seals, func(s sealRecord) bool { return strings.HasPrefix(s.identity, "retired") }) {
		return nil
	}
	return fmt.Errorf("quarantine: master %s has no incarnation at %s in any database, so there is nothing to end; nothing was changed. If daemons use it, give this command their --key-prefix and --databases; a blank master is quarantined by itself",
		one.master.Name, g.sealKey())
}

// expendable is nil if the other masters are a quorum that votes, or the master has no incarnation
// that could end.
func (c *change) expendable(one *candidate) error {
	g, m := c.group, one.master
	if err := cmp.Or(g.readSeals([]*candidate{one}, c.command()), c.read()); err != nil {
		return err
	}
	isIncarnation := func(s sealRecord) bool {
		_, err := admission.ParseIdentity(s.identity)
		return err == nil // otherwise there is none, or it was invalidated
	}
	if !slices.ContainsFunc(one.seals, isIncarnation) {
		return nil
	}
	list := g.options.Configuration(0)
	if newest := c.newest(); newest.Now != nil && newest.Now.Epoch > 0 {
		list = newest.Now // also one that is not in force yet
	}
	others, vote := c.untilVotes(list, m.Name), 0
	for _, wait := range others {
		if wait <= 0 {
			vote++
		}
	}
	if quorum := pool.Quorum(len(list.Masters)); has(list, m.Name) && vote < quorum {
		return fmt.Errorf("quarantine: %d of the %d other masters vote, and a quorum is %d: without master %s nothing is granted or extended for up to %s; nothing was changed. First bring back the others (redlockd check). If its files were replaced, its votes may be wrong: stop it now, or quarantine it all the same by --force",
			vote, len(list.Masters)-1, quorum, m.Name, humanDuration(g.options.Age()))
	}
	return nil
}

// find is the master of this name or address, for the command what.
func (g *group) find(what, master string) (wire.Master, error) {
	for _, m := range g.options.Masters {
		if m.Name == master || m.Address == master {
			return m, nil
		}
	}
	return wire.Master{}, fmt.Errorf("%s: %q is the name or address of no master; nothing was changed; allowed: %s", what, master, g.options.Names(g.options.Configuration(0)))
}
