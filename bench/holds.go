// Ten thousand leases that the daemon renews by itself, beside a load. The peer is the
// same load without them.

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	heldLeases = 10_000
	// holders is the number of connections that share the leases, as of a few programs.
	holders = 10
	// holdMillis is the length of a lease, which the daemon renews after a third of it.
	// The leases are acquired over such a third. So they are renewed evenly while the load
	// runs, as after a day, and not all at once or not at all.
	holdMillis = "30000"
	holdStep   = 100 * time.Millisecond // between two steps of acquiring
	holdSteps  = 100
	holdName   = "daemon, one multiplexed client, 64 callers, beside 10 000 HOLD leases"
)

func holdScenarios() []scenario {
	const n = 64
	return []scenario{{name: holdName, page: pageModes, peer: multiplexedName(n), run: pairs(n, openBesideHolds)}}
}

// openBesideHolds starts a daemon for the run, so that no lease outlives the run.
func openBesideHolds(ctx context.Context, shared *testbed, n int) (workerSet, error) {
	d, err := shared.startDaemon("holds")
	if err != nil {
		return workerSet{}, err
	}
	own := &workerSet{close: d.process.terminate}
	if err := d.ready(ctx); err != nil {
		return workerSet{}, errors.Join(err, own.closeNow())
	}
	if err := own.takeHolds(ctx, d); err != nil {
		return workerSet{}, errors.Join(err, own.closeNow())
	}
	tb := *shared
	tb.daemon = d
	c, err := openMultiplexed(ctx, &tb, n)
	if err != nil {
		return workerSet{}, errors.Join(err, own.closeNow())
	}
	rest := c.close
	c.close = func() {
		rest()
		own.close()
	}
	return c, nil
}

// takeHolds acquires the leases step by step, over one connection after another.
func (c *workerSet) takeHolds(ctx context.Context, d *daemon) error {
	var conns []*respConn
	for range holders {
		conn, err := dialRESP(ctx, d.address)
		if err != nil {
			return err
		}
		c.addCloser(conn.close)
		conns = append(conns, conn)
	}
	missing := 0
	for step := range holdSteps {
		// The keys are used with this daemon only: it gets SIGTERM right after its clients
		// have closed, and the leases of a stopped daemon only expire.
		undecided, err := hold(conns[step%holders], fmt.Sprintf("bench:hold:%s:%d", d.address, step))
		if err != nil {
			return err
		}
		// On a busy machine a few may be undecided; the load is the same.
		if missing += undecided; missing > heldLeases/20 {
			return fmt.Errorf("%d of %d leases with HOLD were not granted", missing, (step+1)*heldLeases/holdSteps)
		}
		if err := pause(ctx, holdStep); err != nil {
			return err
		}
	}
	return nil
}

// hold acquires the leases of one step in one pipeline, with this prefix.
func hold(conn *respConn, prefix string) (undecided int, err error) {
	const share = heldLeases / holdSteps
	for i := range share {
		conn.queue("DLOCK", fmt.Sprintf("%s:%d", prefix, i), holdMillis, "HOLD")
	}
	if err := conn.flush(); err != nil {
		return 0, err
	}
	for range share {
		r, err := conn.read()
		if err != nil {
			return 0, err
		}
		if r.Kind != '*' {
			undecided++
		}
	}
	return undecided, nil
}
