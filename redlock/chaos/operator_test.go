package chaos

// operator_test.go: an operator who replaces one master after the other while clients work.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"

	"redlockd/pool/faulty"
)

// operator replaces the masters of a stand. idleName is a counter that nobody uses meanwhile.
type operator struct {
	run *run

	mu      sync.Mutex
	names   []string // of the present masters, by their place on the stand
	changes int
	failed  []error
}

const (
	idleName = "idle"
	idleIDs  = 41
	// maxChangeTries is how often a command may end half-way.
	maxChangeTries = 5
)

func operatorTrade() trade { return trade{"masters replaced", 1, newOperator} }

func newOperator(r *run) workload {
	o := &operator{run: r}
	for i := range r.stand.masters {
		o.names = append(o.names, masterName(i))
	}
	c := r.caller(0)
	defer c.leave()
	if first, err := o.draw(c, idleName, idleIDs); err != nil || first != 1 {
		r.t.Errorf("the first ids begin at %d (%v)", first, err)
	}
	return o
}

// draw wants ids until they are given: a change has taken the counter along.
func (o *operator) draw(c *caller, name string, count int64) (first int64, err error) {
	reply, err := insist(func() (any, error) { return c.ask("DNEXTID", name, "COUNT", count) })
	first, _ = reply.(int64)
	return first, err
}

func (o *operator) work(ctx context.Context, c *caller) {
	for ctx.Err() == nil {
		if err := o.replace(c); err != nil {
			o.mu.Lock()
			o.failed = append(o.failed, err)
			o.mu.Unlock()
			return
		}
	}
}

// replace has a new server take the place of the master that is there longest, which ends.
func (o *operator) replace(c *caller) error {
	s := o.run.stand
	place, joins := o.changes%len(o.names), fmt.Sprint("new", o.changes)
	server := faulty.Start(s.t, "--appendonly", "yes", "--appendfsync", "always")
	list := make([]string, len(s.masters))
	for i, m := range s.masters {
		list[i] = o.names[i] + "=" + m.Addr()
	}
	words := []string{"masters", "replace", o.names[place], joins + "=" + server.Addr(), "--wait", "--master-timeout", "5s",
		"--masters", strings.Join(list, ","), "--max-ttl", s.maxLease().String(), "--max-keep", s.keep().String()}
	for tries := 1; ; tries++ { // as the runbook has it: the same command again
		command := exec.Command(s.binary, words...)
		command.Env = environment()
		if output, err := command.CombinedOutput(); err == nil {
			break
		} else if tries == maxChangeTries {
			return fmt.Errorf("change %d, %d times: %w\n%s", o.changes, tries, err, output)
		}
	}
	s.masters[place].Kill()
	s.masters[place], o.names[place] = server, joins
	o.changes++
	if c.connect() {
		if first, err := o.draw(c, "after "+joins, 1); err != nil || first < 1 {
			return fmt.Errorf("after change %d a counter that was never used gives %d: %w", o.changes, first, err)
		}
	}
	return nil
}

// probe: the counter that was idle goes on above its last id.
func (o *operator) probe(c *caller) error {
	if first, err := o.draw(c, idleName, 1); err != nil || first <= idleIDs {
		return fmt.Errorf("a counter that was idle gives %d after %d: %w", first, idleIDs, err)
	}
	return nil
}

func (o *operator) verdict() (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	tally := fmt.Sprintf("%d changes", o.changes)
	if o.changes == 0 {
		o.failed = append(o.failed, errNothingGiven)
	}
	return tally, errors.Join(o.failed...)
}

func (o *operator) dump(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%d changes, the masters are %s\n", o.changes, strings.Join(o.names, ", "))
	return err
}
