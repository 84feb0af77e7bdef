package chaos

// counters_test.go: clients that want ids.

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"redlockd/redlock/checker"
)

var counterNames = []string{"orders", "invoices"}

type counters struct {
	run   *run
	names []string

	mu     sync.Mutex
	ranges []checker.Range
}

func newCounters(r *run) workload {
	n := &counters{run: r, names: counterNames}
	r.nemesis.forgets = n.forgets
	n.begin()
	return n
}

// newHighCounters begin where one of a thousand integers is a double.
func newHighCounters(r *run) workload {
	w := newCounters(r)
	for _, m := range r.stand.masters {
		for _, name := range counterNames {
			stored, _ := m.Do("GET", counterKey+name)
			text, _ := stored.(string)
			if _, incarnation, ok := strings.Cut(text, "@"); ok {
				_, _ = m.Do("SET", counterKey+name, "4611686018427387905@"+incarnation)
			}
		}
	}
	return w
}

// idleCounters rest for longer than a master is quarantined, so that several forget them
// one after the other. They may end as lost.
type idleCounters struct{ *counters }

func newIdleCounters(r *run) workload {
	n := &counters{run: r}
	for i := range 1200 {
		n.names = append(n.names, fmt.Sprint("idle", i))
	}
	n.begin()
	return idleCounters{n}
}

func (idleCounters) probe(*caller) error { return nil }

// begin uses each counter once while every master has its memory: a master
// that lost it cannot distinguish an unknown counter from a lost one.
func (n *counters) begin() {
	c := n.run.caller(0)
	defer c.leave()
	if err := n.probe(c); err != nil {
		n.run.t.Error(err)
	}
}

func (n *counters) work(ctx context.Context, c *caller) {
	for ctx.Err() == nil {
		if c.connect() {
			n.next(c, n.names[c.random.IntN(len(n.names))], 1+c.random.Int64N(20))
		}
		c.rest(ctx, 20*time.Millisecond)
	}
}

func (n *counters) next(c *caller, name string, count int64) (any, error) {
	began := n.run.record.Now()
	reply, err := c.ask("DNEXTID", name, "COUNT", count)
	ended := n.run.record.Now()
	if first, ok := reply.(int64); ok {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.ranges = append(n.ranges, checker.Range{Client: c.number, Name: name, First: first, Count: count, Invoke: began, Complete: ended})
	}
	return reply, err
}

func (n *counters) probe(c *caller) error {
	for _, name := range n.names {
		if reply, err := insist(func() (any, error) { return n.next(c, name, 1) }); err != nil {
			return fmt.Errorf("DNEXTID %s: %v, %v", name, reply, err)
		}
	}
	return nil
}

// forgets reports whether a master does not yet remember a counter again: only
// then may another one forget.
func (n *counters) forgets(master int) bool {
	for _, name := range n.names {
		if n.run.stand.groupOf(name) == n.run.stand.groupOfMaster(master) && !n.remembers(master, name) {
			return true
		}
	}
	return false
}

// remembers queries the daemons: any that reaches the master has the answer.
func (n *counters) remembers(master int, name string) bool {
	for _, d := range n.run.stand.daemons {
		reply, err := d.ask("DIDS", name)
		table, ok := reply.([]any)
		if err != nil || !ok || len(table) != 2 {
			continue
		}
		for _, row := range table[1].([]any) {
			if fields := row.([]any); fields[0] == masterName(master) && fields[2] == int64(1) {
				return true
			}
		}
	}
	return false
}

func (n *counters) verdict() (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	tally := fmt.Sprintf("%d ranges of ids", len(n.ranges))
	if len(n.ranges) == 0 {
		return tally, errNothingGiven
	}
	return tally, checker.CheckIDs(n.ranges)
}

func (n *counters) dump(w io.Writer) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	encoder := json.NewEncoder(w)
	for i := range n.ranges {
		if err := encoder.Encode(&n.ranges[i]); err != nil {
			return err
		}
	}
	return nil
}
