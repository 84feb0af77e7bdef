// Two daemons before the same masters, as when one machine is not enough or may
// fail: do they stand in each other's way? The peer is one daemon with as many
// callers.
package main

import (
	"context"
	"errors"

	"github.com/redis/rueidis"
)

const callersOfEach = 64

func daemonsScenarios() []scenario {
	n := 2 * callersOfEach
	return []scenario{
		{name: multiplexedName(n), page: pagePairs, run: pairs(n, openMultiplexed)},
		{name: twoDaemonsName, page: pageModes, peer: multiplexedName(n), run: pairs(n, openTwo(rueidis.ClientOption{}))},
		{name: tunedName(n), page: pagePairs, run: pairs(n, openTuned)},
		{name: twoTunedName, page: pageModes, peer: tunedName(n), run: pairs(n, openTwo(tuned()))},
	}
}

const (
	twoDaemonsName = "two daemons, one multiplexed client each, 2 × 64 callers"
	twoTunedName   = "two daemons, one client on one connection each, 2 × 64 callers"
)

// openTwo starts a second daemon for the run.
func openTwo(o rueidis.ClientOption) opener {
	return func(ctx context.Context, st *stand, n int) (crew, error) { return openPair(ctx, st, o, n) }
}

func openPair(ctx context.Context, st *stand, o rueidis.ClientOption, n int) (crew, error) {
	second, err := st.startDaemon("second")
	if err != nil {
		return crew{}, err
	}
	c := crew{daemons: []*daemon{st.daemon, second}, close: second.process.terminate}
	if err := second.ready(ctx); err != nil {
		c.close()
		return crew{}, err
	}
	for i, d := range c.daemons {
		o.InitAddress = []string{d.address}
		client, err := rueidis.NewClient(o)
		if err != nil {
			return crew{}, errors.Join(err, c.end())
		}
		c.first(client.Close)
		c.workers = append(c.workers, multiplexedWorkers(client, i*n/2, n/2)...)
	}
	return c, nil
}

// first has something closed before everything else.
func (c *crew) first(closeIt func()) {
	rest := c.close
	c.close = func() {
		closeIt()
		if rest != nil {
			rest()
		}
	}
}

// end closes a crew that could not be completed.
func (c *crew) end() error {
	c.close()
	return nil
}
