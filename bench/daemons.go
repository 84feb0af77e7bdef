// Two daemons that share the masters, as when one machine is not enough or may fail. The
// peer is one daemon with as many callers.

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
	return func(ctx context.Context, tb *testbed, n int) (workerSet, error) { return openPair(ctx, tb, o, n) }
}

func openPair(ctx context.Context, tb *testbed, o rueidis.ClientOption, n int) (workerSet, error) {
	second, err := tb.startDaemon("second")
	if err != nil {
		return workerSet{}, err
	}
	c := workerSet{daemons: []*daemon{tb.daemon, second}, close: second.process.terminate}
	if err := second.ready(ctx); err != nil {
		c.close()
		return workerSet{}, err
	}
	for i, d := range c.daemons {
		o.InitAddress = []string{d.address}
		client, err := rueidis.NewClient(o)
		if err != nil {
			return workerSet{}, errors.Join(err, c.closeNow())
		}
		c.addCloser(client.Close)
		c.workers = append(c.workers, multiplexedWorkers(client, i*n/2, n/2)...)
	}
	return c, nil
}

// addCloser adds a function that closeNow and close call before all others.
func (ws *workerSet) addCloser(closeIt func()) {
	rest := ws.close
	ws.close = func() {
		closeIt()
		if rest != nil {
			rest()
		}
	}
}

// closeNow closes a workerSet that could not be completed.
func (ws *workerSet) closeNow() error {
	ws.close()
	return nil
}
