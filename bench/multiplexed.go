// The daemon with one shared client. All callers of a process share the connections of
// rueidis to one address, on which it pipelines by itself. A second client is tuned for
// many concurrent requests to one server, because the pool of redsync is tuned, too.

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"
)

var (
	errRefused     = errors.New("an uncontended lock was refused")
	errNotReleased = errors.New("a lock was not held any more when it was released")
)

func multiplexedName(n int) string {
	return "daemon, one multiplexed client, " + callers(n)
}

func tunedName(n int) string {
	return "daemon, one client on one connection, " + callers(n)
}

func multiplexedScenarios() []scenario {
	var all []scenario
	for _, n := range []int{1, 8, 64, 256} {
		all = append(all, scenario{
			name: multiplexedName(n), page: pagePairs, peer: redsyncName(n),
			run: pairs(n, openMultiplexed),
		}, scenario{
			name: tunedName(n), page: pagePairs, peer: redsyncName(n),
			run: pairs(n, openTuned),
		})
	}
	return all
}

func openMultiplexed(_ context.Context, tb *testbed, n int) (workerSet, error) {
	return openClient(tb, rueidis.ClientOption{}, n)
}

// tuned has one connection instead of four, and a pause between two writes in which further
// callers join: rueidis advises 20 µs. Measured, medians of three rounds, 64 callers: 29 200
// pairs a second with the defaults of rueidis, 35 900 on one connection, 45 200 with the
// pause. Pauses of 50 and 100 µs gave 41 500 and 40 300.
func tuned() rueidis.ClientOption {
	return rueidis.ClientOption{PipelineMultiplex: -1, MaxFlushDelay: 20 * time.Microsecond}
}

func openTuned(_ context.Context, tb *testbed, n int) (workerSet, error) {
	return openClient(tb, tuned(), n)
}

func openClient(tb *testbed, o rueidis.ClientOption, n int) (workerSet, error) {
	o.InitAddress = []string{tb.daemon.address}
	client, err := rueidis.NewClient(o)
	if err != nil {
		return workerSet{}, err
	}
	return workerSet{workers: multiplexedWorkers(client, 0, n), daemons: []*daemon{tb.daemon}, close: client.Close}, nil
}

// multiplexedWorkers returns n callers of one client. first is the number of the first one.
func multiplexedWorkers(client rueidis.Client, first, n int) []worker {
	var all []worker
	for i := range n {
		all = append(all, &multiplexedWorker{client: client, ttl: leaseMillis, keys: workerKeys("client", first+i)})
	}
	return all
}

// multiplexedWorker is one caller of the shared client.
type multiplexedWorker struct {
	client rueidis.Client
	ttl    string
	keys   []string
	next   int
}

func (w *multiplexedWorker) turn(n *recorder) error {
	key := w.keys[w.next%len(w.keys)]
	w.next++
	ctx := context.Background() // the daemon replies in time, or the run fails
	stage, began := n.now()
	grant, err := w.client.Do(ctx, w.client.B().Arbitrary("DLOCK").Keys(key).Args(w.ttl).Build()).ToArray()
	if rueidis.IsRedisNil(err) {
		return errRefused
	}
	if err != nil {
		return err
	}
	n.acquired(stage, began)
	if len(grant) != 3 {
		return fmt.Errorf("DLOCK answered %d elements, want token, validity and fence", len(grant))
	}
	token, err := grant[0].ToString()
	if err != nil {
		return err
	}
	released, err := w.client.Do(ctx, w.client.B().Arbitrary("DUNLOCK").Keys(key).Args(token).Build()).AsInt64()
	if err != nil {
		return err
	}
	if released != 1 {
		return errNotReleased
	}
	n.released()
	return nil
}
