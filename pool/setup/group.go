// group: the masters that a subcommand works on, and what it reads on all of them.

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
		g.dial = watched(wire.DialRueidis(max(timeout, o.DialTimeout())), o.Logger)
	}
	return g, nil
}

func (g *group) sealKey() string { return g.options.GroupKey("seal") }

// candidate is a connected master of a command that needs all of them.
type candidate struct {
	master wire.Master
	link   wire.Link
	info   admission.ServerInfo
	seals  []sealRecord // by database, see readSeals
}

// sealRecord is the content of a master's seal in one database.
type sealRecord struct {
	identity    string // "" for none
	register    int64
	minRegister int64 // what the register cannot be below, by the records of the other masters
	stored      admission.StoredConfiguration
	older       bool // what it has of changes may be; it counts as none
}

// used reports whether a group has an identity in a database, on any of its masters.
func used(all []*candidate, db int) bool {
	return slices.ContainsFunc(all, func(one *candidate) bool { return one.seals[db].mark() != "" })
}

// mark is that of the configuration in an identity, or in one that was invalidated.
func (s *sealRecord) mark() string {
	_, mark := admission.SplitMark(admission.FingerprintOf(s.identity))
	return mark
}

// carries reports whether the configuration of a mark stands there, and not only in an older file.
func (s *sealRecord) carries(mark string) bool { return !s.older && s.mark() == mark }

// connect reaches a master. One that answers and is unfit is returned beside the reason.
func (g *group) connect(ctx context.Context, m wire.Master) (c *candidate, err error) {
	link, err := g.dial(ctx, m, 0)
	if err != nil {
		return nil, fmt.Errorf("master %s: %w", m.Name, err)
	}
	c = &candidate{master: m, link: link}
	if c.info, err = admission.Probe(link, g.options.Clock); err != nil {
		err = fmt.Errorf("master %s %w", m.Name, err)
	}
	return c, err
}

// connectAll connects to all masters, for a command that needs all of them; the
// error names the command and the reason why it cannot run.
func (g *group) connectAll(ctx context.Context, what string) (all []*candidate, err error) {
	var errs []error
	for _, m := range g.options.Masters {
		c, err := g.connect(ctx, m)
		if c != nil {
			all = append(all, c)
		}
		if err != nil {
			errs = append(errs, err)
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

// inDB sends a command in one database and returns its reply; an error reply is an error, too.
func inDB(link wire.Link, db int, args ...string) (wire.Reply, error) {
	replies, err := wire.Ask(link, wire.Words("SELECT", strconv.Itoa(db)), wire.Words(args...))
	if err != nil {
		return wire.Reply{}, err
	}
	return replies[1], errors.Join(replies[0].Err, replies[1].Err)
}

// readSeals reads every seal and the records of connected masters, for the command what.
func (g *group) readSeals(all []*candidate, what string) error {
	// The records first: while daemons serve, registers rise and their records follow, and a register
	// that was read before its records would look like one that was rolled back.
	least := make([]map[string]int64, g.options.Databases)
	for db := range least {
		var err error
		if least[db], err = g.readRecords(db, all); err != nil {
			return fmt.Errorf("%s: reading records in database %d: %w", what, db, err)
		}
	}
	for _, c := range all {
		c.seals = nil
		for db := range g.options.Databases {
			reply, err := inDB(c.link, db, "ZRANGE", g.sealKey(), "0", "-1", "WITHSCORES")
			if err != nil {
				return fmt.Errorf("%s: master %s, database %d: %w (--databases is the number in use)", what, c.master.Name, db, err)
			}
			s := readSealed(reply.Items)
			texts, err := inDB(c.link, db, "HGET", admission.ConfigurationKey, g.options.Group)
			if err != nil {
				return fmt.Errorf("%s: master %s, database %d: %w", what, c.master.Name, db, err)
			}
			processes, err := inDB(c.link, db, "HGET", admission.ConfigurationKey, g.options.Group+"\nprocesses")
			if err != nil {
				return fmt.Errorf("%s: master %s, database %d: %w", what, c.master.Name, db, err)
			}
			s.stored, s.minRegister = admission.ParseStored(texts.Str), least[db][c.master.Name]
			s.older = admission.MayBeOlder(s.identity, processes.Str, c.info.RunID, c.info.Durable(g.options.AssumeDurable))
			c.seals = append(c.seals, s)
		}
		c.findOlder(g)
	}
	return nil
}

// findOlder finds what of the seals may be older than a change. A change renames all databases of a
// master at once: what stands in one that no daemon uses is as good as the same in another one.
func (c *candidate) findOlder(g *group) {
	proved := map[string]bool{}
	for i := range c.seals {
		proved[c.seals[i].mark()] = proved[c.seals[i].mark()] || !c.seals[i].older
	}
	for db := range c.seals {
		s := &c.seals[db]
		swapped := s.identity != "" && !admission.SameDB(admission.FingerprintOf(s.identity), g.options.Fingerprint(db, "", c.master.Name))
		s.older = s.older && !proved[s.mark()] || s.register < s.minRegister || swapped
	}
}

// readSealed reads member and score, flat as RESP2 has them or as a pair.
func readSealed(items []wire.Reply) sealRecord {
	if len(items) > 0 && items[0].Kind == wire.ReplyArray {
		items = items[0].Items
	}
	if len(items) < 2 {
		return sealRecord{}
	}
	register, _ := items[1].Number()
	return sealRecord{identity: items[0].Str, register: register}
}

// readRecords reads one database's records on connected masters: below which the register of each
// master cannot be.
func (g *group) readRecords(db int, all []*candidate) (map[string]int64, error) {
	least := map[string]int64{}
	for _, c := range all {
		replies, err := wire.Ask(c.link, pool.AppendRecordQueries(&g.options, db, []wire.Command{wire.Words("SELECT", strconv.Itoa(db))})...)
		if err != nil {
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

// present is the configuration with these settings that masters carry, that with the highest
// epoch; the first one if there is none.
func (g *group) present(all []*candidate) admission.StoredConfiguration {
	present := admission.StoredConfiguration{Now: g.options.Configuration(1), InForce: true}
	for _, c := range all {
		for db, s := range c.seals {
			if s.stored.Now == nil || s.mark() != s.stored.Now.Mark() || admission.FingerprintOf(s.identity) != g.options.Fingerprint(db, s.mark(), c.master.Name) {
				continue
			}
			if s.stored.InForce && s.stored.Now.Epoch >= present.Now.Epoch {
				present = s.stored
			}
		}
	}
	return present
}

// optionsOf are the options with the lists and the map of a configuration.
func (g *group) optionsOf(c *admission.Configuration) pool.Options {
	o := g.options
	o.Masters, o.Prefixes = c.Masters, c.Prefixes
	o.Slots, o.MapVersion, o.Leaving, o.To, o.LeftAt = c.Slots, c.MapVersion, c.Leaving, c.To, c.LeftAt
	return o
}

// keep completes the options by what the masters carry. Options without a list of key prefixes leave
// it as it is. Slots that have moved between groups are those of the masters: the file may be older.
func (g *group) keep(newest admission.StoredConfiguration, out io.Writer) {
	now, o := newest.Now, &g.options
	if now == nil {
		return
	}
	if len(o.Prefixes) == 0 {
		o.Prefixes = now.Prefixes
	}
	if o.Slots != now.Slots && now.MapVersion == 0 {
		return // they are refused
	}
	if o.Slots != now.Slots {
		fmt.Fprintf(out, "group %s has the slots %s in the file and %s on its masters, since a later move: those of the masters count\n", o.Group, orAll(o.Slots), orAll(now.Slots))
	}
	o.Slots, o.MapVersion, o.Leaving, o.To, o.LeftAt = now.Slots, now.MapVersion, now.Leaving, now.To, now.LeftAt
}

// request is for the admission of a master under a configuration, whatever it carries.
func (g *group) request(c *candidate, db int, of admission.StoredConfiguration) admission.Request {
	o := &g.options
	return admission.Request{
		SealKey: g.sealKey(), DB: db, Fingerprint: o.Fingerprint(db, of.Now.Mark(), c.master.Name), Durable: c.info.Durable(o.AssumeDurable),
		Texts: of.Texts(), Group: o.Group, KeyPrefix: o.KeyPrefix, Prefixes: of.Now.Prefixes,
	}
}

// highest are the highest register in a database, and the latest base in all of them: it lies ahead
// of the clocks while leases of longer, former limits may last.
func highest(all []*candidate, db int) (register, base int64) {
	for _, c := range all {
		register = max(register, c.seals[db].register)
		for _, s := range c.seals {
			if incarnation, err := admission.ParseIdentity(s.identity); err == nil {
				base = max(base, incarnation.Base)
			}
		}
	}
	return register, base
}

// checkClocks: an incarnation that begins by a wrong clock ends its quarantine at a wrong time, and the
// admission would refuse it when others vote already.
func checkClocks(all []*candidate, what string) error {
	median := medianOffset(all)
	var errs []error
	for _, c := range all {
		if off := c.info.Est.Offset - median; clock.Abs(off) > clock.Micros(admission.MaxSkew)+c.info.Est.Err {
			errs = append(errs, fmt.Errorf("%s: master %s: %s; nothing was changed", what, c.master.Name, admission.ClockOff(off)))
		}
	}
	return errors.Join(errs...)
}

func medianOffset(all []*candidate) int64 {
	var offsets []int64
	for _, c := range all {
		offsets = append(offsets, c.info.Est.Offset)
	}
	return clock.Median(offsets)
}

// sleep lets time pass.
func (g *group) sleep(ctx context.Context, d time.Duration) error {
	if g.options.Tasks != nil {
		g.options.Tasks.Sleep(d)
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// humanDuration is a duration for people.
func humanDuration(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }
