// Leases that the daemon renews by itself: what is left for others beside ten
// thousand of them? The peer is the same load without any.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	heldLeases = 10_000
	// holders share the leases: connections of a few programs.
	holders = 10
	// holdMillis is the length of a lease, which is renewed after a third of it.
	// The leases are taken over such a third, so that they are renewed evenly
	// while the load runs, as after a day, and not all at once or not at all.
	holdMillis = "30000"
	holdStep   = 100 * time.Millisecond // between two steps of taking
	holdSteps  = 100
	holdName   = "daemon, one multiplexed client, 64 callers, beside 10 000 HOLD leases"
)

func holdScenarios() []scenario {
	const n = 64
	return []scenario{{name: holdName, page: pageModes, peer: multiplexedName(n), run: pairs(n, openBesideHolds)}}
}

// openBesideHolds uses a daemon of its own, so that no lease outlives the run.
func openBesideHolds(ctx context.Context, shared *stand, n int) (crew, error) {
	d, err := shared.startDaemon("holds")
	if err != nil {
		return crew{}, err
	}
	own := &crew{close: d.process.terminate}
	if err := d.ready(ctx); err != nil {
		return crew{}, errors.Join(err, own.end())
	}
	if err := own.takeHolds(ctx, d); err != nil {
		return crew{}, errors.Join(err, own.end())
	}
	st := *shared
	st.daemon = d
	c, err := openMultiplexed(ctx, &st, n)
	if err != nil {
		return crew{}, errors.Join(err, own.end())
	}
	rest := c.close
	c.close = func() {
		rest()
		own.close()
	}
	return c, nil
}

// takeHolds takes the leases step by step, over one connection after another.
func (c *crew) takeHolds(ctx context.Context, d *daemon) error {
	var conns []*respConn
	for range holders {
		conn, err := dialRESP(ctx, d.address)
		if err != nil {
			return err
		}
		c.first(conn.close)
		conns = append(conns, conn)
	}
	missing := 0
	for step := range holdSteps {
		// Keys of this daemon alone: it is told to stop a moment after its clients
		// have gone, and the leases of a stopped daemon run out by themselves.
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

// hold takes one step's share of the leases, with this prefix, in one pipeline.
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
		if r.kind != '*' {
			undecided++
		}
	}
	return undecided, nil
}
