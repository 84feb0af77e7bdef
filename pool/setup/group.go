// group: the masters that a subcommand works on, and what it reads on all of them.

package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"redlockd/pool"
	"redlockd/pool/admission"
	"redlockd/pool/wire"
)

// group is the masters that the options name.
type group struct {
	options pool.Options
	dial    wire.Dialer
}

// stepTimeout bounds each step of a subcommand with one master. An operator would rather wait
// than repeat a command that was half done when a master was slow.
const stepTimeout = 5 * time.Second

// newGroup bounds each step with a master by timeout.
func newGroup(o pool.Options, timeout time.Duration) (*group, error) {
	if err := o.WithDefaults(); err != nil {
		return nil, err
	}
	g := &group{options: o, dial: o.Dialer}
	if g.dial == nil {
		g.dial = wire.DialRueidis(max(timeout, o.DialTimeout()))
	}
	return g, nil
}

func (g *group) sealKey() string { return g.options.KeyPrefix + "redlockd:seal" }

// candidate is a connected master of a command that needs all of them.
type candidate struct {
	master wire.Master
	link   wire.Link
	info   admission.ServerInfo
}

// durable reports whether the master has on disk what it answers: what CONFIG answers, or
// the operator's assurance where CONFIG is forbidden.
func (g *group) durable(c *candidate) bool {
	return c.info.Volatile == "" || g.options.AssumeDurable && c.info.Volatile == admission.ConfigRefused
}

// connectAll connects to all masters, for a command that needs all of them; the
// error names the command and the reason why it cannot run.
func (g *group) connectAll(ctx context.Context, what string) (all []*candidate, err error) {
	var errs []error
	for _, m := range g.options.Masters {
		link, err := g.dial(ctx, m, 0)
		if err != nil {
			errs = append(errs, fmt.Errorf("master %s: %w", m.Name, err))
			continue
		}
		c := &candidate{master: m, link: link}
		all = append(all, c)
		if c.info, err = admission.Probe(link, g.options.Clock); err != nil {
			errs = append(errs, fmt.Errorf("master %s %w", m.Name, err))
		}
	}
	if len(errs) > 0 {
		return all, fmt.Errorf("%s needs all %d masters: %w", what, len(g.options.Masters), errors.Join(errs...))
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

// readAllRecords reads one database's records on connected masters. It returns by name
// what the register of each cannot be below.
func (g *group) readAllRecords(db int, all []*candidate) (map[string]int64, error) {
	least := map[string]int64{}
	for _, c := range all {
		commands := pool.AppendRecordQueries(&g.options, db, []wire.Command{{Args: []string{"SELECT", strconv.Itoa(db)}}})
		replies := c.link.Exchange(commands, nil)
		if err := wire.ExchangeErr(replies, len(commands)); err != nil {
			return nil, err
		}
		for i, m := range g.options.Masters {
			if score, _ := pool.ReadRecord(replies[1+i]); m.Name != c.master.Name {
				least[m.Name] = max(least[m.Name], score)
			}
		}
	}
	return least, nil
}

func medianOffset(all []*candidate) int64 {
	var offsets []int64
	for _, c := range all {
		offsets = append(offsets, c.info.Est.Offset)
	}
	slices.Sort(offsets)
	return offsets[(len(offsets)-1)/2]
}

// humanDuration is a duration for people.
func humanDuration(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }
