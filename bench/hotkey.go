// Callers with keys of their own, beside others that all try one key. The peer is the same
// load beside others with keys of their own, so that the number of callers does not differ.

package main

import (
	"context"

	"github.com/redis/rueidis"
)

const (
	besideCallers = 64
	besideOwnName = "daemon, one multiplexed client, 64 callers, beside 64 with keys of their own"
	besideHotName = "daemon, one multiplexed client, 64 callers, beside 64 that try one key"
)

func hotKeyScenarios() []scenario {
	return []scenario{
		{name: besideOwnName, page: pageBeside, run: pairs(besideCallers, openBeside(func(w *multiplexedWorker) {}))},
		{name: besideHotName, page: pageBeside, peer: besideOwnName, run: pairs(besideCallers, openBeside(func(w *multiplexedWorker) {
			w.keys = []string{"bench:hot"}
		}))},
	}
}

// openBeside adds callers that are not measured, each changed by change. They use a client of
// their own, and most of their requests are refused if they share a key.
func openBeside(change func(*multiplexedWorker)) opener {
	return func(ctx context.Context, tb *testbed, n int) (workerSet, error) {
		c, err := openMultiplexed(ctx, tb, n)
		if err != nil {
			return c, err
		}
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{tb.daemon.address}})
		if err != nil {
			c.close()
			return workerSet{}, err
		}
		others := multiplexedWorkers(client, n, besideCallers)
		for _, w := range others {
			change(w.(*multiplexedWorker))
		}
		beside := startLoad(others)
		c.addCloser(func() {
			_ = beside.stop() // refusals are expected
			client.Close()
		})
		return c, nil
	}
}
