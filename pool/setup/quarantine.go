// Quarantine: the incarnations of one master end, because an operator replaced its files.

package setup

import (
	"context"
	"fmt"
	"io"
	"strings"

	"redlockd/pool"
	"redlockd/pool/admission"
	"redlockd/pool/wire"
)

// Quarantine ends the incarnations of one master, given by its name or address,
// and reports to out what it ended and how long the master does not vote.
func Quarantine(ctx context.Context, o pool.Options, master string, out io.Writer) error {
	g, err := newGroup(o, stepTimeout)
	if err != nil {
		return err
	}
	m, err := g.find("quarantine", master)
	if err != nil {
		return err
	}
	link, err := g.dial(ctx, m, 0)
	if err != nil {
		return fmt.Errorf("quarantine: master %s: %w; nothing was changed", m.Name, err)
	}
	defer link.Close()
	all, err := admission.EndIncarnations(link, g.sealKey())
	if err != nil {
		return fmt.Errorf("quarantine: master %s: %w", m.Name, err)
	}
	dbs := make([]string, len(all))
	for i, e := range all {
		dbs[i] = e.DB
		// The daemons that admit it may run with other limits than this process.
		if ttl, err := parseSettings(e.Identity).duration("max-ttl"); err == nil {
			g.options.MaxTTL = max(g.options.MaxTTL, ttl)
		}
	}
	if len(all) == 0 {
		fmt.Fprintf(out, "master %s: it has no incarnation in any database; nothing was changed\n", m.Name)
	} else {
		fmt.Fprintf(out, "master %s: ended its incarnation in databases %s\n", m.Name, strings.Join(dbs, ", "))
	}
	fmt.Fprintf(out, "master %s: it does not vote for %s from its next admission; a daemon that runs admits it at once (DMASTERS: quarantined)\n", m.Name, humanDuration(g.options.Age()))
	return nil
}

// find is the master of this name or address, for the command what.
func (g *group) find(what, master string) (wire.Master, error) {
	var names []string
	for _, m := range g.options.Masters {
		if m.Name == master || m.Address == master {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return wire.Master{}, fmt.Errorf("%s: %q is the name or address of no master; allowed: %s (--masters)", what, master, strings.Join(names, ", "))
}
