// DIDS [name], DIDS DEL name CONFIRM value and DIDRESEED name value: show what the
// masters remember of counters, delete a counter, or set one whose value was lost.

package commands

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"redlockd/redlock"
)

const (
	// maxListedCounters bounds one listing: with nine masters and the longest names
	// a thousand counters are about a megabyte on the wire.
	maxListedCounters = 1000
	// countersAtOnce is how many of them are read at the same time, so that a
	// listing never blocks the lanes.
	countersAtOnce = 16
)

// dids answers a map: counter → per master [master, value, trusted]. The value
// of a master that did not answer is nil.
func (t *Table) dids(c *Call) error {
	if len(c.Args) == 1 {
		t.deps.IDs.ListCounters(c.Client.DB, func(names []redlock.Key, err error) {
			t.listCounters(c, visible(c, names), err)
		})
		return nil
	}
	name, err := parseCounter(c.Args[1])
	if err != nil {
		return err
	}
	t.listCounters(c, []redlock.Key{name}, nil)
	return nil
}

// visible leaves out names that no key pattern of the client's user covers.
func visible(c *Call, names []redlock.Key) []redlock.Key {
	return slices.DeleteFunc(names, func(name redlock.Key) bool { return !c.MayUse(string(name)) })
}

// didreseed answers OK once a quorum of masters remembers the value and vouches
// for it.
func (t *Table) didreseed(c *Call) error {
	name, err := parseCounter(c.Args[1])
	if err != nil {
		return err
	}
	value, err := bounds{max: math.MaxInt64}.parse("value", c.Args[2])
	if err != nil {
		return err
	}
	if err := t.deps.Users.MayCount(c.Rights(), c.Client.DB, name); err != nil {
		c.Reply(Error("NOPERM", err.Error()))
		return nil
	}
	t.deps.IDs.Reseed(c.Client.DB, name, value, func(err error) {
		if err != nil {
			c.Reply(failure(err))
			return
		}
		c.Reply(OK)
	})
	return nil
}

// didsDel answers [master, fate] for each master once a quorum has deleted the counter.
// The row's first argument is no key, so the name is checked here.
func (t *Table) didsDel(c *Call) error {
	name, err := parseCounter(c.Args[2])
	if err != nil {
		return err
	}
	if !isWord(c.Args[3], "CONFIRM") {
		return fmt.Errorf("'%s' stands where CONFIRM is expected, and behind it the counter's value (see DIDS %s): what is deleted begins at 1 again", clip(c.Args[3], shownBytes), name)
	}
	value, err := bounds{max: math.MaxInt64}.parse("CONFIRM", c.Args[4])
	if err != nil || !c.MayUseAll(name) {
		return err
	}
	db := c.Client.DB
	t.deps.IDs.DeleteCounter(db, name, value, func(fates []redlock.CounterFate, err error) {
		if err != nil {
			c.Reply(failure(err))
			return
		}
		t.deps.Users.CounterGone(db, name)
		masters := make([]Reply, len(fates))
		for i, f := range fates {
			masters[i] = Array(Bulk(f.Master), Bulk(f.Fate))
		}
		c.Reply(Array(masters...))
	})
	return nil
}

// listCounters reads the named counters, some at a time, and answers when all are in.
func (t *Table) listCounters(c *Call, names []redlock.Key, err error) {
	switch {
	case err != nil:
		c.Reply(failure(err))
		return
	case len(names) > maxListedCounters:
		c.Reply(Error("ERR", fmt.Sprintf("there are %d counters or more and one listing has room for %d; name one: DIDS name", len(names), maxListedCounters)))
		return
	case len(names) == 0:
		c.Reply(Map())
		return
	}
	s := &counterListing{ids: t.deps.IDs, call: c, names: names, found: make([]Reply, len(names)), open: len(names)}
	for range min(countersAtOnce, len(names)) {
		s.readNext()
	}
}

// counterListing is a listing on its way.
type counterListing struct {
	ids   IDs
	call  *Call
	names []redlock.Key

	mu     sync.Mutex
	found  []Reply // by the index of the name
	failed error   // the last one
	next   int     // first name that was not requested
	open   int     // names without an answer
}

// readNext reads one more counter. Each answer starts the next read, so that what
// is in flight never grows.
func (s *counterListing) readNext() {
	s.mu.Lock()
	i := s.next
	s.next++
	s.mu.Unlock()
	if i >= len(s.names) {
		return
	}
	s.ids.ReadCounter(s.call.Client.DB, s.names[i], func(counter redlock.Counter, err error) {
		s.add(i, counter, err)
	})
}

// add notes one counter and answers after the last.
func (s *counterListing) add(i int, counter redlock.Counter, err error) {
	s.mu.Lock()
	s.found[i] = counterReply(counter)
	if err != nil {
		s.failed = err
	}
	s.open--
	last := s.open == 0
	s.mu.Unlock()
	if !last {
		s.readNext()
		return
	}
	if s.failed != nil {
		s.call.Reply(failure(s.failed))
		return
	}
	items := make([]Reply, 0, 2*len(s.names))
	for i, name := range s.names {
		items = append(items, Bulk(string(name)), s.found[i])
	}
	s.call.Reply(Map(items...))
}

// counterReply is one counter on all masters.
func counterReply(counter redlock.Counter) Reply {
	masters := make([]Reply, len(counter.Masters))
	for i, m := range counter.Masters {
		value, trusted := Nil, Int(0)
		if m.Known {
			value = Int(m.Value)
		}
		if m.Known && m.Trusted {
			trusted = Int(1)
		}
		masters[i] = Array(Bulk(m.Master), value, trusted)
	}
	return Array(masters...)
}
