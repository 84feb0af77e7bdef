// This file reads and lists counters, and installs an operator's value for a counter
// whose value was lost.

package ids

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"redlockd/pool"
	"redlockd/redlock/engine"
)

// CounterOnMaster is one master's view of a counter.
type CounterOnMaster struct {
	Master  string
	Known   bool  // the master answered
	Value   int64 // last id it accepted
	Trusted bool  // the master's memory vouches for the value
}

// Counter is a counter over all masters.
type Counter struct {
	Name    engine.Key
	Masters []CounterOnMaster
}

// ReadCounter reads one counter from every master; err is *NoQuorum if fewer than a
// quorum answered.
func (is *IDs) ReadCounter(db int, name engine.Key, done func(Counter, error)) {
	if err := is.engine.Enter(); err != nil {
		done(Counter{}, err)
		return
	}
	is.readCounter(db, name, func(c Counter, m *engine.Missing) {
		is.engine.Leave()
		if m.Answered() < is.engine.Pool.Quorum() {
			done(c, is.engine.NoQuorum(m, "what is known of the counter is incomplete"))
			return
		}
		done(c, nil)
	})
}

func (is *IDs) readCounter(db int, name engine.Key, done func(Counter, *engine.Missing)) {
	g := is.engine.Pool.Group(db)
	is.engine.Collect(nil, g, pool.Props{Sealed: true}, func(m *pool.SendContext, c *pool.Command) {
		c.Set("EVALSHA", is.engine.Scripts.DeleteID, "1", is.key(name), m.Incarnation.ID, blankIsZero(m.Incarnation), "", "") // it shows only
	}, func(answers []pool.Answer) {
		counter, m := Counter{Name: name}, new(engine.Missing)
		for i, status := range g.Statuses() {
			value := readID(answers[i].Reply)
			if value.code >= -1 && answers[i].Seal.Good { // -1 counts, too: the key holds something else
				m.MarkCounted(i)
			}
			m.MarkMissing(i, is.engine.Pool.Absence(&answers[i]))
			counter.Masters = append(counter.Masters, CounterOnMaster{
				Master: status.Name, Known: value.code == 1 && answers[i].Seal.Good,
				Value: value.number, Trusted: value.trusted,
			})
		}
		done(counter, m)
	})
}

// Reseed installs the value of a counter whose value was lost, on every master that
// answers. It is refused below any value that a master still has.
func (is *IDs) Reseed(db int, name engine.Key, value int64, done func(error)) {
	if err := is.engine.Enter(); err != nil {
		done(err)
		return
	}
	finish := func(err error) { is.engine.Leave(); done(err) }
	is.readCounter(db, name, func(c Counter, _ *engine.Missing) {
		highest := CounterOnMaster{Value: value} // the error proposes it: a lower one would be refused again
		for _, m := range c.Masters {
			if m.Known && m.Value > highest.Value {
				highest = m
			}
		}
		if highest.Known {
			finish(&BelowKnown{Counter: name, Value: value, Known: highest.Value, Master: highest.Master})
			return
		}
		is.install(db, name, value, finish)
	})
}

func (is *IDs) install(db int, name engine.Key, value int64, done func(error)) {
	g := is.engine.Pool.Group(db)
	is.engine.Collect(nil, g, pool.Props{Sealed: true}, func(m *pool.SendContext, c *pool.Command) {
		c.Set("EVALSHA", is.engine.Scripts.Reseed, "1", is.key(name), strconv.FormatInt(value, 10), m.Incarnation.ID)
	}, func(answers []pool.Answer) {
		var m engine.Missing
		unconfirmed := 0 // may have installed the value without confirming it
		for _, a := range answers {
			m.MarkMissing(a.Lane, is.engine.Pool.Absence(&a))
			switch stored := readID(a.Reply); {
			case stored.code == 1 && a.Seal.Good:
				m.MarkCounted(a.Lane)
			case stored.code == 0:
				done(&BelowKnown{Counter: name, Value: value, Known: stored.number, Master: g.Statuses()[a.Lane].Name})
				return
			case stored.code == -1 && a.Seal.Good:
				m.MarkMissing(a.Lane, pool.AbsentFor(is.foreign(name), 0))
			case stored.code != -1 && a.Sent:
				unconfirmed++
			}
		}
		if installed := m.Answered(); installed < is.engine.Pool.Quorum() {
			note := "the value was installed on the masters that answered; repeat the command"
			switch {
			case installed == 0 && unconfirmed == 0:
				note = "the value was installed nowhere; repeat the command"
			case installed == 0:
				note = "no master has confirmed the value; repeat the command"
			}
			done(is.engine.NoQuorum(&m, note))
			return
		}
		done(nil)
	})
}

var errUnexpectedScan = errors.New("answered SCAN with something unexpected")

// maxListed bounds what one listing collects, and with it the daemon's memory.
const maxListed = 10_000

// ListCounters collects the names of counters from all masters, sorted, at most maxListed
// of them.
func (is *IDs) ListCounters(db int, done func([]engine.Key, error)) {
	if err := is.engine.Enter(); err != nil {
		done(nil, err)
		return
	}
	g := is.engine.Pool.Group(db)
	scan := &counterScan{engine: is.engine, group: g, prefix: is.key(""), names: map[engine.Key]bool{}, open: is.engine.Pool.N()}
	scan.done = func(names []engine.Key, err error) { is.engine.Leave(); done(names, err) }
	for lane := range scan.open {
		scan.send(lane, "0")
	}
}

// counterScan walks over the keys of all masters in parallel.
type counterScan struct {
	engine *engine.Engine
	group  *pool.Group
	prefix string
	done   func([]engine.Key, error)

	mu      sync.Mutex
	missing engine.Missing
	names   map[engine.Key]bool
	open    int // masters whose walk has not finished
}

func (s *counterScan) send(lane int, cursor string) {
	s.group.Push(lane, &engine.Message{
		Write: func(_ *pool.SendContext, c *pool.Command) bool {
			c.Set("SCAN", cursor, "MATCH", pool.GlobEscape(s.prefix)+"*", "COUNT", "1000")
			return true
		},
		OnAnswer: s.onPage,
	})
}

func (s *counterScan) onPage(a pool.Answer) {
	s.mu.Lock()
	next := s.addPageLocked(&a)
	if next != "" && len(s.names) >= maxListed {
		s.missing.MarkCounted(a.Lane) // this master has shown as many names as are listed
		next = ""
	}
	if next != "" {
		s.mu.Unlock()
		s.send(a.Lane, next)
		return
	}
	s.open--
	last := s.open == 0 // then nothing else uses names and missing
	s.mu.Unlock()
	switch {
	case !last:
	case s.missing.Answered() < s.engine.Pool.Quorum():
		s.done(nil, s.engine.NoQuorum(&s.missing, ""))
	default:
		s.done(slices.Sorted(maps.Keys(s.names)), nil)
	}
}

// addPageLocked adds the names of one page; "" ends this master's walk.
func (s *counterScan) addPageLocked(a *pool.Answer) (cursor string) {
	r := &a.Reply
	if r.Kind != pool.ReplyArray || len(r.Items) != 2 {
		s.missing.MarkMissing(a.Lane, s.engine.Pool.Absence(a))
		if a.Sent && r.Err == nil { // SCAN is sent without a seal
			s.missing.MarkMissing(a.Lane, pool.AbsentFor(errUnexpectedScan, 0))
		}
		return ""
	}
	for _, item := range r.Items[1].Items {
		s.names[engine.Key(strings.TrimPrefix(item.Str, s.prefix))] = true
	}
	if r.Items[0].Str == "0" {
		s.missing.MarkCounted(a.Lane)
		return ""
	}
	return r.Items[0].Str
}
