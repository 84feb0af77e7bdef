// Ids of one counter for all callers, on masters in memory and on masters that write to
// disk before they answer.

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/redis/rueidis"

	"redlockd/redlock"
)

// medium is the storage of the masters for a counter.
type medium struct {
	name    string
	durable bool
}

var media = []medium{{"memory", false}, {"appendfsync always", true}}

func idScenarios() []scenario {
	const n = 64
	var all []scenario
	for _, m := range media {
		name := func(source string) string { return fmt.Sprintf("ids: %s, %s, %s", source, m.name, callers(n)) }
		naive := name("two phases, retried at once")
		all = append(all,
			scenario{name: naive, page: pageIDs, run: m.on(pairs(n, openNaive(0)))},
			scenario{name: name("two phases, retried after a pause"), page: pageIDs, peer: naive, run: m.on(pairs(n, openNaive(naivePause)))},
			scenario{name: name("engine in process"), page: pageIDs, peer: naive, run: m.on(pairs(n, openIDs))},
			scenario{name: name("daemon, one multiplexed client"), page: pageIDs, peer: naive, run: m.on(pairs(n, openDaemonIDs))},
		)
	}
	return all
}

// on runs on masters of the medium, and records the time of a write there.
func (m medium) on(run runner) runner {
	if !m.durable {
		return run
	}
	return func(ctx context.Context, shared *testbed, span time.Duration) (figures, error) {
		tb, err := shared.durable(ctx)
		if err != nil {
			return nil, err
		}
		took, err := fsyncTime(tb.dir)
		if err != nil {
			return nil, err
		}
		f, err := run(ctx, tb, span)
		if err == nil {
			f[fsyncP50] = took
		}
		return f, err
	}
}

// fsyncTime is the median of some writes to a file beside the files of the masters, in µs.
func fsyncTime(dir string) (float64, error) {
	file, err := os.Create(filepath.Join(dir, "fsync"))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	var took []float64
	line := make([]byte, 100)
	for range 25 {
		began := time.Now()
		if _, err := file.Write(line); err != nil {
			return 0, err
		}
		if err := file.Sync(); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(began))/float64(time.Microsecond))
	}
	middle, _ := median(took)
	return middle, nil
}

const idName = "bench"

func openIDs(_ context.Context, tb *testbed, n int) (workerSet, error) {
	c, locker, err := startEngine(tb, nil)
	if err != nil {
		return workerSet{}, err
	}
	for range n {
		w := &idWorker{locker: locker, outcome: make(chan error, 1)}
		w.done = func(_ int64, err error) { w.outcome <- err }
		c.workers = append(c.workers, w)
	}
	return c, nil
}

// idWorker draws ids in this process.
type idWorker struct {
	locker  *redlock.Locker
	done    redlock.IDDone
	outcome chan error // 1: the completion must not block
}

func (w *idWorker) turn(n *recorder) error {
	stage, began := n.now()
	w.locker.NextID(nil, redlock.IDRequest{Name: idName, Count: 1}, w.done)
	if err := <-w.outcome; err != nil {
		return err
	}
	n.acquired(stage, began)
	n.released()
	return nil
}

func openDaemonIDs(_ context.Context, tb *testbed, n int) (workerSet, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{tb.daemon.address}})
	if err != nil {
		return workerSet{}, err
	}
	c := workerSet{daemons: []*daemon{tb.daemon}, close: client.Close}
	for range n {
		c.workers = append(c.workers, daemonIDWorker{client})
	}
	return c, nil
}

// daemonIDWorker is one caller of the shared client.
type daemonIDWorker struct{ client rueidis.Client }

func (w daemonIDWorker) turn(n *recorder) error {
	stage, began := n.now()
	err := w.client.Do(context.Background(), w.client.B().Arbitrary("DNEXTID").Keys(idName).Build()).Error()
	if err != nil {
		return err
	}
	n.acquired(stage, began)
	n.released()
	return nil
}
