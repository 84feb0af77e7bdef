// Side: one of the groups of a move of slots, and what its masters carry.

package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"redlockd/pool"
	"redlockd/pool/admission"
	"redlockd/redlock/slots"
)

// side is one of the groups, and what its masters carry.
type side struct {
	*change
	newest  admission.StoredConfiguration
	owned   slots.Ranges
	leaving slots.Ranges // given up in its last change of slots
	err     error        // why its configuration is unknown
}

func (s *side) name() string { return s.group.options.Group }

// look reads what the group's masters carry now. Those that fail are left out.
func (s *side) look(ctx context.Context) error {
	closeAll(s.all)
	s.all, s.newest, s.owned, s.leaving = nil, admission.StoredConfiguration{}, nil, nil
	s.connect(ctx, s.group.options.Masters)
	s.readSome()
	newest := s.change.newest()
	if newest.Now == nil {
		return fmt.Errorf("slots: %d of %d masters of group %s answer, and none has a configuration of it: bring them back, and run the same command again; a new group begins with slots = \"none\" and redlockd bootstrap",
			len(s.all), len(s.group.options.Masters), s.name())
	}
	s.connect(ctx, newest.Now.Masters)
	if newest.Former != nil && !newest.InForce {
		s.connect(ctx, newest.Former.Masters)
	}
	s.readSome()
	s.newest = s.change.newest()
	now := s.newest.Now
	if now == nil {
		return fmt.Errorf("slots: the masters of group %s ended their connections; run the same command again", s.name())
	}
	var err error
	if s.owned, err = slots.ParseOwned(now.Slots); err != nil {
		return fmt.Errorf("slots: epoch %d of group %s: %w", now.Epoch, s.name(), err)
	}
	if now.Leaving != "" {
		s.leaving, err = slots.Parse(now.Leaving)
	}
	return errors.Join(err, s.known())
}

// readSome reads the seals, and leaves out masters that do not answer any more.
func (s *side) readSome() {
	for s.read() != nil {
		n := len(s.all)
		s.all = slices.DeleteFunc(s.all, func(one *candidate) bool {
			err := s.group.readSeals([]*candidate{one}, s.what)
			if err != nil {
				fmt.Fprintln(s.out, err)
				one.link.Close()
			}
			return err != nil
		})
		if n == len(s.all) { // it answers again
			s.all = slices.DeleteFunc(s.all, func(one *candidate) bool { return len(one.seals) < s.group.options.Databases })
			return
		}
	}
}

// known reports whether so many masters answer, and have forgotten nothing, that a later configuration
// would be on one of them.
func (s *side) known() error {
	n, needed, blank := 0, pool.Quorum(len(s.newest.Now.Masters)), ""
	for _, one := range s.all {
		forgot := len(one.seals) == 0
		for db := range one.seals {
			forgot = forgot || used(s.all, db) && (one.seals[db].older || one.seals[db].mark() == "")
			if used(s.all, db) && one.seals[db].identity == "" {
				blank = fmt.Sprintf("; in database %d, %s is blank: redis-cli -n %[1]d -h DAEMON -p PORT DMASTERS lets a daemon begin there", db, one.master.Name)
			}
		}
		if has(s.newest.Now, one.master.Name) && !forgot {
			n++
		}
	}
	if n < needed {
		return fmt.Errorf("slots: %d masters of group %s answer and have a configuration, %d are needed to know its slots%s%s", n, s.name(), needed, s.olderText(), blank)
	}
	return nil
}

// next begins a configuration of the group that differs by its slots.
func (s *side) next(owned slots.Ranges, version int64) {
	next := *s.newest.Now
	next.Epoch++
	next.Slots, next.MapVersion = ownedText(owned), version
	s.former, s.change.next, s.inForce = s.newest.Now, &next, false
}

// resume goes on with the newest configuration of the group.
func (s *side) resume() {
	s.former, s.change.next, s.inForce = s.newest.Former, s.newest.Now, s.newest.InForce
}

// complete finishes a cut that is not in force yet.
func (s *side) complete(ctx context.Context) error {
	if s.newest.InForce {
		if _, err := s.inForceSince(); err == nil || s.newest.Former == nil {
			return nil
		}
		s.resume() // masters that carried it have forgotten it, and others may have missed it
		return s.run(ctx)
	}
	if len(s.gained()) > 0 {
		return s.unfinishedChange() // what those slots take along is elsewhere
	}
	s.resume()
	if s.former == nil {
		return fmt.Errorf("slots: the former configuration of group %s is not known; nothing was changed", s.name())
	}
	if err := s.allowed(); err != nil {
		return err
	}
	return s.run(ctx)
}

// settled are the slots that the group has, without those that it gains by a change that is not in
// force and may be lost.
func (s *side) settled() slots.Ranges {
	if s.newest.InForce {
		return s.owned
	}
	return s.owned.Minus(s.gained())
}

// gained are the slots that the newest configuration has and the former one had not.
func (s *side) gained() slots.Ranges {
	return gainedSlots(s.newest.Former, s.newest.Now)
}

// unfinishedChange is the error of a group whose last change is not in force.
func (s *side) unfinishedChange() error {
	return fmt.Errorf("slots: a change of group %s to epoch %d is unfinished, and another one must not replace it; nothing was changed. First finish it: %s",
		s.name(), s.newest.Now.Epoch, s.group.finishCommand(s.newest))
}

// lease is how long the leases of before a change may last: those of the configuration, whatever the
// file of this command has, and also where masters that forgot vote at once.
func (s *side) lease() time.Duration {
	o := pool.Options{MaxTTL: s.newest.Now.MaxTTL}
	return o.Age()
}

// sameSettings is nil if the masters carry the settings of this command.
func (s *side) sameSettings() error {
	if here := s.group.options.Configuration(s.newest.Now.Epoch); !here.SameSettings(s.newest.Now) {
		return fmt.Errorf("slots: the settings of group %s are not those on its masters: %s here, %s there; nothing was changed. Give this command the settings of the daemons", s.name(), here, s.newest.Now)
	}
	return nil
}

// inForceSince is for how long a quorum has carried the configuration, each by its own clock.
func (s *side) inForceSince() (since time.Duration, err error) {
	mark, quorum := s.newest.Now.Mark(), pool.Quorum(len(s.newest.Now.Masters))
	since = s.lease()
	for db := range s.group.options.Databases {
		var ages []time.Duration
		for _, one := range s.all {
			if r := &one.seals[db]; has(s.newest.Now, one.master.Name) && r.mark() == mark && r.carriesStored() {
				ages = append(ages, time.Duration(one.info.Est.At(s.group.options.Clock.Now())-r.stored.At)*time.Microsecond)
			}
		}
		if !used(s.all, db) {
			continue
		}
		if len(ages) < quorum {
			return 0, fmt.Errorf("slots: database %d: %d masters of group %s carry epoch %d and answer, %d must; run the same command again", db, len(ages), s.name(), s.newest.Now.Epoch, quorum)
		}
		slices.Sort(ages)
		since = min(since, ages[len(ages)-quorum])
	}
	return since, nil
}

// memories are those of the masters of a group, of slots in which nothing is granted.
func (s *side) memories(ranges slots.Ranges) *memories {
	return &memories{group: s.group, all: s.all, what: s.what, of: s.newest.Now, marks: []string{s.newest.Now.Mark()}, ranges: ranges, frozen: true}
}

// awaitMemories waits until a quorum of the masters remembers everything.
func (s *side) awaitMemories(ctx context.Context) error {
	quorum, longest, m := pool.Quorum(len(s.newest.Now.Masters)), time.Duration(0), s.memories(nil)
	for db := range s.group.options.Databases {
		var waits []time.Duration
		for _, one := range s.all {
			if incarnation := m.incarnation(one, db); incarnation != nil {
				waits = append(waits, m.untilKnows(one, incarnation))
			}
		}
		if !used(s.all, db) {
			continue
		}
		if len(waits) < quorum {
			return fmt.Errorf("slots: database %d: %d masters of group %s answer with an unbroken memory, %d must: bring them back, and run the same command again", db, len(waits), s.name(), quorum)
		}
		slices.Sort(waits)
		longest = max(longest, waits[quorum-1])
	}
	if longest <= 0 {
		return nil
	}
	text := fmt.Sprintf("the masters of group %s have forgotten something: waiting %%s until nothing of that matters\n", s.name())
	if err := s.group.countdown(ctx, longest, text, s.out); err != nil {
		return err
	}
	if err := s.look(ctx); err != nil {
		return err
	}
	return s.awaitMemories(ctx)
}

// readAll reads what the slots have in all databases. What is unknown is an error that ends with so.
func (s *side) readAll(ranges slots.Ranges, so string) (all carried, err error) {
	m := s.memories(ranges)
	for db := range s.group.options.Databases {
		one, err := m.readDB(db)
		switch {
		case err != nil:
			return nil, err
		case one.noWorks:
			return nil, fmt.Errorf("slots: database %d: fewer than %d masters of group %s answer with an unbroken memory: bring them back, and run the same command again", db, pool.Quorum(len(m.of.Masters)), s.name())
		case len(one.lost) > 0:
			return nil, fmt.Errorf("slots: %s", lostText(one.lost, so))
		}
		all = append(all, one)
	}
	return all, nil
}

// install gives one master of the target what is carried over, before it gets the next configuration.
func (s *side) install(one *candidate, all carried, ranges slots.Ranges) error {
	renamed, m := append(s.lostChanges(), s.former), s.memories(ranges)
	for db := range all {
		mark := one.seals[db].mark()
		if !slices.ContainsFunc(renamed, func(c *admission.Configuration) bool { return c.Mark() == mark }) {
			continue // it has it, or begins a new incarnation
		}
		knows := ""
		if all[db].forgot {
			knows = "forgot"
		}
		if err := m.installDB(one, db, &all[db], knows); err != nil {
			return fmt.Errorf("database %d: %w", db, err)
		}
	}
	return nil
}
