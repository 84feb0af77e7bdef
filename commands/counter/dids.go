// DIDS [name], DIDS DEL name CONFIRM value and DIDRESEED name value: show what the
// masters remember of counters, delete a counter, or set one whose value was lost.

package counter

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"redlockd/commands"
	"redlockd/commands/arg"
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
func (h *handlers) dids(c *commands.Call) error {
	if len(c.Args) == 1 {
		h.deps.IDs.ListCounters(c.Client.DB, func(names []redlock.Key, err error) {
			h.listCounters(c, visible(c, names), err)
		})
		return nil
	}
	name, err := arg.ParseCounter(c.Args[1])
	if err != nil {
		return err
	}
	h.listCounters(c, []redlock.Key{name}, nil)
	return nil
}

// visible leaves out names that no key pattern of the client's user covers.
func visible(c *commands.Call, names []redlock.Key) []redlock.Key {
	return slices.DeleteFunc(names, func(name redlock.Key) bool { return !c.MayUse(string(name)) })
}

// didreseed answers OK once a quorum of masters remembers the value and vouches
// for it.
func (h *handlers) didreseed(c *commands.Call) error {
	name, err := arg.ParseCounter(c.Args[1])
	if err != nil {
		return err
	}
	value, err := arg.Bounds{Max: math.MaxInt64}.Parse("value", c.Args[2])
	if err != nil {
		return err
	}
	if err := h.deps.Users.MayCount(c.Rights(), c.Client.DB, name); err != nil {
		c.Reply(commands.Error("NOPERM", err.Error()))
		return nil
	}
	h.deps.IDs.Reseed(c.Client.DB, name, value, func(err error) {
		if err != nil {
			c.Reply(commands.Failure(err))
			return
		}
		c.Reply(commands.OK)
	})
	return nil
}

// didsDel answers [master, fate] for each master once a quorum has deleted the counter.
// The row's first argument is no key, so the name is checked here.
func (h *handlers) didsDel(c *commands.Call) error {
	name, err := arg.ParseCounter(c.Args[2])
	if err != nil {
		return err
	}
	if !arg.IsWord(c.Args[3], "CONFIRM") {
		return fmt.Errorf("'%s' stands where CONFIRM is expected, and behind it the counter's value (see DIDS %s): what is deleted begins at 1 again", commands.Clip(c.Args[3], commands.ShownBytes), name)
	}
	value, err := arg.Bounds{Max: math.MaxInt64}.Parse("CONFIRM", c.Args[4])
	if err != nil || !c.MayUseAll(name) {
		return err
	}
	db := c.Client.DB
	h.deps.IDs.DeleteCounter(db, name, value, func(fates []redlock.CounterFate, err error) {
		if err != nil {
			c.Reply(commands.Failure(err))
			return
		}
		h.deps.Users.CounterGone(db, name)
		masters := make([]commands.Reply, len(fates))
		for i, f := range fates {
			masters[i] = commands.Array(commands.Bulk(f.Master), commands.Bulk(f.Fate))
		}
		c.Reply(commands.Array(masters...))
	})
	return nil
}

// listCounters reads the named counters, some at a time, and answers when all are in.
func (h *handlers) listCounters(c *commands.Call, names []redlock.Key, err error) {
	switch {
	case err != nil:
		c.Reply(commands.Failure(err))
		return
	case len(names) > maxListedCounters:
		c.Reply(commands.Error("ERR", fmt.Sprintf("there are %d counters or more and one listing has room for %d; name one: DIDS name", len(names), maxListedCounters)))
		return
	case len(names) == 0:
		c.Reply(commands.Map())
		return
	}
	s := &counterListing{ids: h.deps.IDs, call: c, names: names, found: make([]commands.Reply, len(names)), open: len(names)}
	for range min(countersAtOnce, len(names)) {
		s.readNext()
	}
}

// counterListing is a listing on its way.
type counterListing struct {
	ids   commands.IDs
	call  *commands.Call
	names []redlock.Key

	mu     sync.Mutex
	found  []commands.Reply // by the index of the name
	failed error            // the last one
	next   int              // first name that was not requested
	open   int              // names without an answer
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
		s.call.Reply(commands.Failure(s.failed))
		return
	}
	items := make([]commands.Reply, 0, 2*len(s.names))
	for i, name := range s.names {
		items = append(items, commands.Bulk(string(name)), s.found[i])
	}
	s.call.Reply(commands.Map(items...))
}

// counterReply is one counter on all masters.
func counterReply(counter redlock.Counter) commands.Reply {
	masters := make([]commands.Reply, len(counter.Masters))
	for i, m := range counter.Masters {
		value, trusted := commands.Nil, commands.Int(0)
		if m.Known {
			value = commands.Int(m.Value)
		}
		if m.Known && m.Trusted {
			trusted = commands.Int(1)
		}
		masters[i] = commands.Array(commands.Bulk(m.Master), value, trusted)
	}
	return commands.Array(masters...)
}
