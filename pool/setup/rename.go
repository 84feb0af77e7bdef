// Rename changes the list of masters, or of key prefixes, while the daemons serve.
//
// The next configuration takes the place of the former one on the masters that carry it. Their
// memory stays, so they vote on. Two daemons with different lists never grant at once:
//
//  1. Quorums of both lists meet in the former one, and the former list has rested for the
//     longest lease: no lease is left that was granted before it.
//  2. The next configuration is in force when a quorum of the former list carries it; of two
//     changes only one gets so far, see rivals.go. Only then daemons use it.
//  3. New masters come after that. They begin an incarnation, so they count when each lease
//     of the former list is over.
//  4. A daemon with the former list begins with no master any more: package pool, epoch.go.
//
// A change that stopped half-way is finished by the same command, and by no other.
//
// Slots change in the same way, see moves.go. The list then stays, and all quorums meet.

package setup

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
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

//go:embed rename.lua
var renameScript string

// minEvidence is how long the next configuration stands on a quorum before other masters get
// it. By then nothing is under way that a daemon with the former one has sent, see package pool.
const minEvidence = 1500 * time.Millisecond

// change is one change of the list, or of the slots.
type change struct {
	group  *group
	out    io.Writer
	what   string            // the command, for errors; "" = reconfigure
	all    []*candidate      // that answer, of both lists
	absent map[string]string // of others, by name: why they are left out
	terms  ChangeTerms
	former *admission.Configuration
	next   *admission.Configuration

	inForce bool // it is from an earlier run; some masters may have missed it

	before []admission.Daemon // that the masters listed before the change

	// carry gives a master what it must have before it gets a next configuration with more slots.
	// Without it, a master with the former one does not get it. One with a change that lost does: a
	// quorum has been given what it must have, and every later quorum meets that one.
	carry func(one *candidate) error
}

func (c *change) command() string { return cmp.Or(c.what, "reconfigure") }

// gains reports whether the next configuration has more slots.
func (c *change) gains() bool { return len(gainedSlots(c.former, c.next)) > 0 }

// rename changes the lists if nothing but the lists differs from what the masters carry. It
// reports false if another way is needed.
func (g *group) rename(ctx context.Context, terms ChangeTerms, out io.Writer) (done bool, err error) {
	c := &change{group: g, terms: terms, out: out}
	defer func() { closeAll(c.all) }()
	c.connect(ctx, g.options.Masters)
	if err := c.read(); err != nil {
		return false, err
	}
	newest := c.newest()
	if newest.Now == nil {
		return false, nil
	}
	g.keep(newest, out)
	if own := g.options.Configuration(0); !own.SameSettings(newest.Now) || !own.SameSlots(newest.Now) {
		return false, nil
	}
	c.connect(ctx, newest.Now.Masters)
	if newest.Former != nil && !newest.InForce {
		c.connect(ctx, newest.Former.Masters)
	}
	stay := slices.DeleteFunc(slices.Clone(c.all), func(one *candidate) bool { return !has(g.options.Configuration(0), one.master.Name) })
	if err := errors.Join(distinct(c.all, "reconfigure"), checkClocks(stay, "reconfigure")); err != nil {
		return false, err
	}
	if err := c.read(); err != nil {
		return false, err
	}
	if newest = c.newest(); newest.Now == nil { // of masters that were not reached before
		return false, nil
	}
	g.keep(newest, io.Discard)
	if ready, err := c.plan(ctx, newest); !ready || err != nil {
		return false, err
	}
	return true, c.run(ctx)
}

// connect adds the masters that answer. What the list of the options lacks is reached as its
// first master is.
func (c *change) connect(ctx context.Context, masters []wire.Master) {
	for _, m := range masters {
		if slices.ContainsFunc(c.all, func(one *candidate) bool { return one.master.Name == m.Name }) {
			continue
		}
		if i := slices.IndexFunc(c.group.options.Masters, func(own wire.Master) bool { return own.Name == m.Name }); i >= 0 {
			m = c.group.options.Masters[i]
		} else {
			m = c.group.withLogin(m)
		}
		switch one, err := c.group.connect(ctx, m); {
		case err == nil:
			c.all = append(c.all, one)
			delete(c.absent, m.Name)
		case one == nil:
			c.printAbsent(m.Name, "is not reached: ", err)
		default:
			c.printAbsent(m.Name, "is left alone: it ", err)
			one.link.Close()
		}
	}
}

// printAbsent reports a master that is left out, once: masters are looked for several times.
func (c *change) printAbsent(name, what string, err error) {
	if strings.HasPrefix(c.absent[name], what) {
		return
	}
	if c.absent == nil {
		c.absent = make(map[string]string)
	}
	c.absent[name] = fmt.Sprint(what, errors.Unwrap(err))
	fmt.Fprintf(c.out, "%s %s\n", name, c.absent[name])
}

func (c *change) read() error {
	return c.group.readSeals(c.all, c.command())
}

func has(c *admission.Configuration, name string) bool {
	return slices.ContainsFunc(c.Masters, func(m wire.Master) bool { return m.Name == name })
}

// plan finds the former and the next configuration, and checks that the change is allowed.
func (c *change) plan(ctx context.Context, newest admission.StoredConfiguration) (ready bool, err error) {
	target := c.group.options.Configuration(newest.Now.Epoch)
	if target.SameLists(newest.Now) {
		if newest.Former == nil { // nothing to do, or not by renaming
			c.former, c.next, c.inForce = newest.Now, newest.Now, true
			_, err := c.share(ctx, c.next)
			return false, err
		}
		c.former, c.next, c.inForce = newest.Former, newest.Now, newest.InForce
		if c.inForce {
			return true, nil
		}
		if c.next.MapVersion != c.former.MapVersion {
			return false, c.unfinished(newest)
		}
		fmt.Fprintf(c.out, "the change to epoch %d is unfinished\n", c.next.Epoch)
		return true, c.allowed()
	}
	if !newest.InForce {
		return false, c.unfinished(newest)
	}
	c.former, c.next = newest.Now, target
	c.next.Epoch++
	if err := cmp.Or(c.allowed(), c.reachable()); err != nil {
		return false, err
	}
	return true, c.rest(ctx, newest)
}

// unfinished is the error of a change that another one has to precede.
func (c *change) unfinished(newest admission.StoredConfiguration) error {
	return fmt.Errorf("%s: a change to epoch %d is unfinished, and another one must not replace it: first finish it with %s; or stop all daemons and run redlockd reconfigure --force",
		c.command(), newest.Now.Epoch, c.group.finishCommand(newest))
}

// run renames, and begins with the new masters.
func (c *change) run(ctx context.Context) error {
	if c.inForce && c.everywhere() {
		learned, err := c.share(ctx, c.next)
		if err == nil && len(learned) == 0 {
			fmt.Fprintln(c.out, "these settings are in force already; nothing was changed")
		}
		return err
	}
	if !c.inForce && !slices.ContainsFunc(c.all, c.carriesNext) { // otherwise an earlier run has done so
		if _, err := c.share(ctx, c.former); err != nil {
			return err
		}
	}
	c.before = c.daemons()
	if err := c.putInForce(); err != nil {
		return err
	}
	if err := c.renameAll(true); err != nil {
		return err
	}
	if c.former.MapVersion == c.next.MapVersion {
		fmt.Fprintf(c.out, "epoch %d is in force: the daemons follow; give them --masters %s at their next start\n", c.next.Epoch, c.group.options.Names(c.next))
	} else {
		fmt.Fprintf(c.out, "epoch %d of group %s is in force: it has the slots %s\n", c.next.Epoch, c.next.Group, orAll(c.next.Slots))
	}
	if err := c.group.sleep(ctx, minEvidence); err != nil {
		return err
	}
	if err := c.read(); err != nil {
		return err
	}
	if err := c.complete(); err != nil {
		return err
	}
	if err := c.beginNew(); err != nil {
		return err
	}
	if err := c.read(); err != nil {
		return err
	}
	if _, err := c.share(ctx, c.next); err != nil {
		return err
	}
	return c.reportFollowers(ctx)
}

// putInForce renames until enough masters carry the next configuration. What another operator did
// meanwhile is seen after the first turn, and what it lost is replaced in the second one.
func (c *change) putInForce() error {
	var err error
	for range 2 {
		if err := c.renameAll(false); err != nil {
			return err
		}
		if err := c.read(); err != nil {
			return err
		}
		if err = c.complete(); err == nil {
			return nil
		}
	}
	return err
}

// everywhere reports whether all masters of the next list that answer carry it.
func (c *change) everywhere() bool {
	return !slices.ContainsFunc(c.all, func(one *candidate) bool {
		return has(c.next, one.master.Name) && slices.ContainsFunc(one.seals, func(s sealRecord) bool { return !s.carries(c.next.Mark()) })
	})
}

// complete checks that the change is in force: of the former list a quorum carries the next
// configuration, and so many masters of both lists as the next one needs. Once it has been in
// force, a quorum of the next list shows that it still is.
func (c *change) complete() error {
	for db := range c.group.options.Databases {
		marks, now := []string{c.next.Mark()}, 0
		all, common := c.carriers(db, marks...)
		for _, one := range c.all {
			if has(c.next, one.master.Name) && c.carriesOneOf(one, db, marks) {
				now++
			}
		}
		next := pool.Quorum(len(c.next.Masters))
		if c.inForce && now < next || !c.inForce && (len(all) < pool.Quorum(len(c.former.Masters)) || len(common) < next) {
			return fmt.Errorf("%s: database %d: only %d masters of the new list carry epoch %d, and %d must; run the same command again", c.command(), db, now, c.next.Epoch, next)
		}
	}
	return nil
}

// renameAll puts the next configuration on the masters of the former list that carry the former
// one, or a change that lost, also on those that leave, so that no daemon uses them any more. All
// operators begin with the same master. Of two changes at once, only the first one there goes on.
func (c *change) renameAll(inForce bool) error {
	var errs []error
	first := !slices.ContainsFunc(c.all, func(one *candidate) bool { return c.carriesNext(one) })
	for _, m := range c.former.Masters {
		i := slices.IndexFunc(c.all, func(one *candidate) bool { return one.master.Name == m.Name })
		if i < 0 {
			continue
		}
		one, databases, err := c.all[i], 0, error(nil)
		if c.gains() && c.carry != nil {
			err = c.carry(one)
		}
		if err == nil {
			databases, err = c.renameOne(one, inForce)
		}
		if first && err == nil && databases == 0 {
			if err := c.rival(one); err != nil {
				return err
			}
		}
		first = first && databases == 0
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: master %s: %w", c.command(), one.master.Name, err))
		case inForce:
		case has(c.next, one.master.Name):
			fmt.Fprintf(c.out, "%s has epoch %d in %d databases\n", one.master.Name, c.next.Epoch, databases)
		default:
			fmt.Fprintf(c.out, "%s leaves: it refuses daemons in %d databases\n", one.master.Name, databases)
		}
	}
	if len(errs) > 0 {
		fmt.Fprintln(c.out, errors.Join(errs...))
	}
	return nil
}

func (c *change) renameOne(one *candidate, inForce bool) (databases int, err error) {
	head, former := cutDB(c.fingerprint(c.former, one))
	_, next := cutDB(c.fingerprint(c.next, one))
	texts := admission.StoredConfiguration{Now: c.next, Former: c.former, InForce: inForce}.Texts()
	args := []string{"EVAL", renameScript, "2", c.group.sealKey(), admission.ConfigurationKey, next, texts, c.group.options.Group, admission.Bit(inForce), head}
	if c.carry != nil || !c.gains() {
		args = append(args, former)
	}
	for _, lost := range c.lostChanges() {
		_, rest := cutDB(c.fingerprint(lost, one))
		args = append(args, rest)
	}
	reply, err := wire.AskOne(one.link, args...)
	if err = errors.Join(err, reply.Err); err != nil {
		return 0, err
	}
	return len(reply.Items), nil
}

// fingerprint is that of one of the two configurations, in database 0.
func (c *change) fingerprint(of *admission.Configuration, one *candidate) string {
	o := c.group.optionsOf(of)
	return o.Fingerprint(0, of.Mark(), one.master.Name)
}

// cutDB returns what stands before and behind the number of database 0.
func cutDB(fingerprint string) (head, rest string) {
	head, rest, _ = strings.Cut(fingerprint, "/db=0/")
	return head + "/db=", "/" + rest
}

// beginNew begins an incarnation where the next configuration does not stand yet: on new
// masters, and in databases that were blank. What cannot be reached, the daemons begin with later.
func (c *change) beginNew() error {
	of := admission.StoredConfiguration{Now: c.next, Former: c.former, InForce: true}
	offset, began := medianOffset(c.all), 0
	for _, one := range c.all {
		for db := range c.group.options.Databases {
			if leaves := !has(c.next, one.master.Name); one.seals[db].carries(c.next.Mark()) || leaves && one.seals[db].identity != "" {
				continue // one that left may serve others by now
			}
			if err := c.begin(one, db, of, offset); err != nil {
				fmt.Fprintf(c.out, "%s, database %d: %v\n", one.master.Name, db, err)
				continue
			}
			began++
		}
	}
	for _, m := range c.next.Masters {
		if !slices.ContainsFunc(c.all, func(one *candidate) bool { return one.master.Name == m.Name }) {
			fmt.Fprintf(c.out, "%s is not reached: the daemons begin with it when it answers\n", m.Name)
		}
	}
	if began > 0 {
		fmt.Fprintf(c.out, "new memories vote in %s; until then all others are needed\n", humanDuration(c.group.options.Age()))
	}
	return nil
}

func (c *change) begin(one *candidate, db int, of admission.StoredConfiguration, offset int64) error {
	if err := selectDB(one.link, db); err != nil {
		return err
	}
	options := c.group.optionsOf(of.Now)
	r := c.group.request(one, db, of)
	r.Fingerprint = options.Fingerprint(db, of.Now.Mark(), one.master.Name)
	r.Floor, r.MinBase = highest(c.all, db)
	r.Floor, r.Lost = max(r.Floor, one.seals[db].minRegister), true
	r.Clock = clock.Micros(c.group.options.Clock.Now()) + offset
	_, err := admission.Admit(one.link, r)
	return err
}
