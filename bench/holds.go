// Ten thousand leases that the daemon renews by itself, beside a load. The peer is the
// same load on a daemon that has run as long, without them.

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
	// freshName is the peer: a daemon that has just started has 0.97 of the throughput of
	// one that has had load for minutes.
	freshName = "daemon just started, one multiplexed client, 64 callers"
)

func holdScenarios() []scenario {
	const n = 64
	return []scenario{
		{name: freshName, page: pageModes, run: pairs(n, openFresh)},
		{name: holdName, page: pageModes, peer: freshName, run: pairs(n, openBesideHolds)},
	}
}

func openFresh(ctx context.Context, shared *testbed, n int) (workerSet, error) {
	wait := func(ctx context.Context, _ *workerSet, _ *daemon) error { return pause(ctx, holdSteps*holdStep) }
	return openOwnDaemon(ctx, shared, n, wait)
}

func openBesideHolds(ctx context.Context, shared *testbed, n int) (workerSet, error) {
	return openOwnDaemon(ctx, shared, n, takeHolds)
}

// openOwnDaemon starts a daemon for the run, so that no lease outlives the run.
func openOwnDaemon(ctx context.Context, shared *testbed, n int, prepare func(context.Context, *workerSet, *daemon) error) (workerSet, error) {
	d, err := shared.startDaemon("holds")
	if err != nil {
		return workerSet{}, err
	}
	own := &workerSet{close: d.process.terminate}
	if err := d.ready(ctx); err != nil {
		return workerSet{}, errors.Join(err, own.closeNow())
	}
	if err := prepare(ctx, own, d); err != nil {
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
func takeHolds(ctx context.Context, c *workerSet, d *daemon) error {
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
