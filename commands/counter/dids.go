// DIDS [name], DIDS DEL name CONFIRM value and DIDRESEED name value: show what the
// masters remember of counters, delete a counter, or set one whose value was lost.

package counter

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

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
	words := c.Words()
	if words.More() {
		name := words.Counter()
		if err := words.Err(); err != nil {
			return err
		}
		h.readCounters(c, []redlock.Key{name})
		return nil
	}
	h.deps.IDs.ListCounters(c.Client.DB, func(names []redlock.Key, err error) {
		names = slices.DeleteFunc(names, func(name redlock.Key) bool { return !c.MayUse(string(name)) })
		switch {
		case err != nil:
			c.Reply(commands.Failure(err))
		case len(names) > maxListedCounters:
			c.Reply(commands.Error("ERR", fmt.Sprintf("there are %d counters or more and one listing has room for %d; name one: DIDS name", len(names), maxListedCounters)))
		case len(names) == 0:
			c.Reply(commands.Map())
		default:
			h.readCounters(c, names)
		}
	})
	return nil
}

// readCounters reads the named counters and answers when all are in. Each answer starts
// the next read, so that what is in flight never grows.
func (h *handlers) readCounters(c *commands.Call, names []redlock.Key) {
	each := commands.Gather(len(names), func(counters []redlock.Counter, errs []error) { c.Reply(countersReply(names, counters, errs)) })
	var next atomic.Int64 // counters whose read was started
	var readNext func()
	readNext = func() {
		i := int(next.Add(1)) - 1
		if i >= len(names) {
			return
		}
		h.deps.IDs.ReadCounter(c.Client.DB, names[i], func(counter redlock.Counter, err error) {
			each(i)(counter, err)
			readNext()
		})
	}
	for range countersAtOnce {
		readNext()
	}
}

// didreseed answers OK once a quorum of masters remembers the value and vouches
// for it.
func (h *handlers) didreseed(c *commands.Call) error {
	words := c.Words()
	name, value := words.Counter(), words.Int("value", arg.Bounds{Max: math.MaxInt64})
	if err := words.Err(); err != nil || !c.MayCount(name) {
		return err
	}
	h.deps.IDs.Reseed(c.Client.DB, name, value, func(err error) {
		c.Reply(commands.Either(true, err, commands.OK, commands.Nil))
	})
	return nil
}

// didsDel answers [master, fate] for each master once a quorum has deleted the counter.
// The row's first argument is no key, so the name is checked here.
func (h *handlers) didsDel(c *commands.Call) error {
	words := arg.Read(c.Args[1:], nil)
	name := words.Counter()
	if confirm := words.Next(); !arg.IsWord(confirm, "CONFIRM") {
		words.Fail(fmt.Errorf("'%s' stands where CONFIRM is expected, and behind it the counter's value (see DIDS %s): what is deleted begins at 1 again", commands.Clip(confirm, commands.ShownBytes), name))
	}
	value := words.Int("CONFIRM", arg.Bounds{Max: math.MaxInt64})
	if err := words.Err(); err != nil || !c.MayUseAll(name) {
		return err
	}
	db := c.Client.DB
	h.deps.IDs.DeleteCounter(db, name, value, commands.Answer(c, func(fates []redlock.CounterFate) commands.Reply {
		h.deps.Users.CounterGone(db, name)
		masters := make([]commands.Reply, len(fates))
		for i, f := range fates {
			masters[i] = commands.Array(commands.Bulk(f.Master), commands.Bulk(f.Fate))
		}
		return commands.Array(masters...)
	}))
	return nil
}

func countersReply(names []redlock.Key, counters []redlock.Counter, errs []error) commands.Reply {
	if failed := cmp.Or(errs...); failed != nil {
		return commands.Failure(failed)
	}
	items := make([]commands.Reply, 0, 2*len(names))
	for i, name := range names {
		items = append(items, commands.Bulk(string(name)), counterReply(counters[i]))
	}
	return commands.Map(items...)
}

func counterReply(counter redlock.Counter) commands.Reply {
	masters := make([]commands.Reply, len(counter.Masters))
	for i, m := range counter.Masters {
		value := commands.Nil
		if m.Known {
			value = commands.Int(m.Value)
		}
		masters[i] = commands.Array(commands.Bulk(m.Master), value, commands.Bool(m.Known && m.Trusted))
	}
	return commands.Array(masters...)
}
