// The testbed of scenarios: a group of masters, and one daemon that uses them.

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"redlockd/pool/faulty"
)

// testbedOptions are the differences between testbeds.
type testbedOptions struct {
	masters int  // of each group; 0 = as many as the testbed that starts it
	groups  int  // groups of masters behind the daemon; 0 = one without a slot map
	durable bool // every master writes to disk before it answers
	// trips are the round trips to the masters, in turn; none = they are on this machine.
	trips []time.Duration
}

// testbed is what scenarios share.
type testbed struct {
	dir        string
	binary     string          // of the daemon
	masters    []*master       // of all groups
	relays     []*faulty.Relay // in front of the masters, or none
	groups     int             // 0 = one without a slot map
	toMasters  []string        // options of the daemons
	daemon     *daemon
	warnings   io.Writer // for failures that do not end the run
	durableBed *testbed  // with as many durable masters; nil until a scenario needs it
}

// warn prints the turns that failed. It ignores nil.
func (tb *testbed) warn(failed error) {
	if failed != nil {
		fmt.Fprintln(tb.warnings, "  ", failed)
	}
}

// startTestbed starts masters and a daemon, and waits until it grants locks.
func startTestbed(ctx context.Context, dir, binary string, o testbedOptions, remarks io.Writer) (*testbed, error) {
	dir, err := os.MkdirTemp(dir, "testbed")
	if err != nil {
		return nil, err
	}
	tb := &testbed{dir: dir, binary: binary, warnings: remarks}
	if err := tb.start(ctx, o); err != nil {
		tb.close()
		return nil, err
	}
	return tb, nil
}

// startAnother starts a further testbed, for scenarios that need their own masters.
func (tb *testbed) startAnother(ctx context.Context, o testbedOptions) (*testbed, error) {
	if o.masters == 0 {
		o.masters = len(tb.masters)
	}
	return startTestbed(ctx, tb.dir, tb.binary, o, tb.warnings)
}

// durable returns the testbed whose masters write to disk. It runs until the end of the
// benchmark, because an idle testbed costs nothing.
func (tb *testbed) durable(ctx context.Context) (*testbed, error) {
	if tb.durableBed == nil {
		var err error
		if tb.durableBed, err = tb.startAnother(ctx, testbedOptions{durable: true}); err != nil {
			return nil, err
		}
	}
	return tb.durableBed, nil
}

func (tb *testbed) start(ctx context.Context, o testbedOptions) error {
	tb.groups = o.groups
	for range o.masters * max(o.groups, 1) {
		m, err := startMaster(ctx, tb.dir, o.durable)
		if err != nil {
			return err
		}
		tb.masters = append(tb.masters, m)
	}
	if len(o.trips) > 0 {
		tb.moveAway(o.trips)
	}
	tb.toMasters = []string{"--masters", strings.Join(tb.addresses(), ",")}
	var err error
	if tb.groups > 0 {
		if tb.toMasters, err = tb.writeMap(tb.groups); err != nil {
			return err
		}
	}
	if tb.daemon, err = tb.startDaemon("redlockd"); err != nil {
		return err
	}
	return tb.daemon.ready(ctx)
}

// startDaemon starts a further daemon that uses the masters. name is for the file of its
// output. Each daemon has its own file, because its address is read from there.
func (tb *testbed) startDaemon(name string, options ...string) (*daemon, error) {
	log, err := os.CreateTemp(tb.dir, name)
	if err != nil {
		return nil, err
	}
	log.Close()
	return startDaemon(tb.binary, log.Name(), slices.Concat(tb.toMasters,
		[]string{"--bootstrap", "--ids-durability", "off", "--log-level", "warn"}, options)...)
}

// close ends all processes of the testbed, the daemon first.
func (tb *testbed) close() {
	if tb.durableBed != nil {
		tb.durableBed.close()
	}
	if tb.daemon != nil {
		tb.daemon.process.terminate()
	}
	for _, r := range tb.relays {
		r.Close()
	}
	for _, m := range tb.masters {
		m.close()
	}
}

// addresses returns the addresses of the masters, or of the relays in front of them.
func (tb *testbed) addresses() []string {
	var all []string
	for _, r := range tb.relays {
		all = append(all, r.Addr())
	}
	if all != nil {
		return all
	}
	for _, m := range tb.masters {
		all = append(all, m.address)
	}
	return all
}

// onOwnTestbed gives every run its own testbed.
func onOwnTestbed(o testbedOptions, run runner) runner {
	return func(ctx context.Context, shared *testbed, span time.Duration) (figures, error) {
		tb, err := shared.startAnother(ctx, o)
		if err != nil {
			return nil, err
		}
		defer tb.close()
		return run(ctx, tb, span)
	}
}
