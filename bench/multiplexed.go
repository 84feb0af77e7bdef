// The daemon behind one client: all callers of a process share what rueidis
// makes of one address, a few connections on which it pipelines by itself; and,
// as redsync's pool is set for it, too, a client that is set for a server of which
// a process wants many answers at once.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"
)

var (
	errRefused     = errors.New("a lock that nobody else wants was refused")
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

func openMultiplexed(_ context.Context, st *stand, n int) (crew, error) {
	return openClient(st, rueidis.ClientOption{}, n)
}

// tuned has one connection instead of four, and a pause between two writes in
// which the next callers join: rueidis advises 20 µs. Measured, medians of three
// rounds, 64 callers: 29 200 pairs a second as rueidis comes, 35 900 on one
// connection, 45 200 with the pause, 41 500 and 40 300 with 50 and 100 µs.
func tuned() rueidis.ClientOption {
	return rueidis.ClientOption{PipelineMultiplex: -1, MaxFlushDelay: 20 * time.Microsecond}
}

func openTuned(_ context.Context, st *stand, n int) (crew, error) { return openClient(st, tuned(), n) }

func openClient(st *stand, o rueidis.ClientOption, n int) (crew, error) {
	o.InitAddress = []string{st.daemon.address}
	client, err := rueidis.NewClient(o)
	if err != nil {
		return crew{}, err
	}
	return crew{workers: multiplexedWorkers(client, 0, n), daemons: []*daemon{st.daemon}, close: client.Close}, nil
}

// multiplexedWorkers are n callers of one client; the first has this number.
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

func (w *multiplexedWorker) turn(n *notes) error {
	key := w.keys[w.next%len(w.keys)]
	w.next++
	ctx := context.Background() // the daemon answers in time, or the run fails
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
