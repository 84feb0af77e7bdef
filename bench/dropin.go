// The drop-in endpoint: the commands that clients of a single Redis send. The peer is
// DLOCK and DUNLOCK.

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"
)

const dropinName = "daemon, drop-in SET NX PX and compare-and-delete, 64 callers"

func dropinScenarios() []scenario {
	const n = 64
	return []scenario{{name: dropinName, page: pageModes, peer: multiplexedName(n), run: pairs(n, openDropin)}}
}

func openDropin(ctx context.Context, tb *testbed, n int) (workerSet, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{tb.daemon.address}})
	if err != nil {
		return workerSet{}, err
	}
	c := workerSet{daemons: []*daemon{tb.daemon}, close: client.Close}
	sha, err := client.Do(ctx, client.B().ScriptLoad().Script(floorRelease).Build()).ToString()
	if refusal, ok := rueidis.IsRedisErr(err); ok {
		return workerSet{}, errors.Join(&unavailable{"the daemon has no drop-in endpoint: " + refusal.Error()}, c.closeNow())
	}
	if err != nil {
		return workerSet{}, errors.Join(err, c.closeNow())
	}
	for i := range n {
		c.workers = append(c.workers, &dropinWorker{client: client, sha: sha, number: i, keys: workerKeys("dropin", i)})
	}
	return c, nil
}

// dropinWorker sends the commands of every lock library for one Redis.
type dropinWorker struct {
	client       rueidis.Client
	sha          string
	number, next int
	keys         []string
}

func (w *dropinWorker) turn(n *recorder) error {
	key := w.keys[w.next%len(w.keys)]
	w.next++
	token := fmt.Sprintf("token-%d-%s", w.number, strconv.Itoa(w.next))
	ctx := context.Background() // the daemon replies in time, or the run fails
	stage, began := n.now()
	err := w.client.Do(ctx, w.client.B().Set().Key(key).Value(token).Nx().Px(leaseTTL).Build()).Error()
	if rueidis.IsRedisNil(err) {
		return errRefused
	}
	if err != nil {
		return err
	}
	n.acquired(stage, began)
	released, err := w.client.Do(ctx, w.client.B().Evalsha().Sha1(w.sha).Numkeys(1).Key(key).Arg(token).Build()).AsInt64()
	if err != nil {
		return err
	}
	if released != 1 {
		return errNotReleased
	}
	n.released()
	return nil
}
