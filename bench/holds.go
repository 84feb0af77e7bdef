// Leases that the daemon renews by itself: what is left for others beside ten
// thousand of them? The peer is the same load without any.
package main

import (
	"context"
	"errors"
	"fmt"
)

const (
	heldLeases = 10_000
	// holders share the leases: connections of a few programs.
	holders = 10
	// holdMillis is the length of a lease, which is renewed after a third of it.
	holdMillis = "30000"
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
	for i := range holders {
		if err := own.hold(ctx, d, i); err != nil {
			return crew{}, errors.Join(err, own.end())
		}
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

// hold takes a connection's share of the leases in one pipeline.
func (c *crew) hold(ctx context.Context, d *daemon, number int) error {
	conn, err := dialRESP(ctx, d.address)
	if err != nil {
		return err
	}
	c.first(conn.close)
	const share, depth = heldLeases / holders, 100
	for from := 0; from < share; from += depth {
		for i := range depth {
			conn.queue("DLOCK", fmt.Sprintf("bench:hold:%d:%d", number, from+i), holdMillis, "HOLD")
		}
		if err := conn.flush(); err != nil {
			return err
		}
		for range depth {
			if r, err := conn.read(); err != nil || r.kind != '*' {
				return errors.Join(err, fmt.Errorf("DLOCK … HOLD of a lock that nobody else wants: %c%s", r.kind, r.text))
			}
		}
	}
	return nil
}
