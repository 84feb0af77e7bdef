// Ids of one counter that everybody draws from, on masters in memory and on
// masters that write to disk before they answer.
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

// medium is where the masters keep a counter.
type medium struct {
	name    string
	durable bool
}

var media = []medium{{"memory", false}, {"appendfsync always", true}}

func idScenarios() []scenario {
	const n = 64
	var all []scenario
	for _, m := range media {
		name := func(who string) string { return fmt.Sprintf("ids: %s, %s, %s", who, m.name, callers(n)) }
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

// on runs on masters of the medium, and notes what it costs there to write.
func (m medium) on(run runner) runner {
	if !m.durable {
		return run
	}
	return func(ctx context.Context, shared *stand, span time.Duration) (figures, error) {
		st, err := shared.durable(ctx)
		if err != nil {
			return nil, err
		}
		took, err := fsyncTime(st.dir)
		if err != nil {
			return nil, err
		}
		f, err := run(ctx, st, span)
		if err == nil {
			f[fsyncP50] = took
		}
		return f, err
	}
}

// fsyncTime is the median of some writes to a file beside the masters', in µs.
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

func openIDs(_ context.Context, st *stand, n int) (crew, error) {
	c, locker, err := startEngine(st, nil)
	if err != nil {
		return crew{}, err
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

func (w *idWorker) turn(n *notes) error {
	stage, began := n.now()
	w.locker.NextID(nil, redlock.IDRequest{Name: idName, Count: 1}, w.done)
	if err := <-w.outcome; err != nil {
		return err
	}
	n.acquired(stage, began)
	n.released()
	return nil
}

func openDaemonIDs(_ context.Context, st *stand, n int) (crew, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{st.daemon.address}})
	if err != nil {
		return crew{}, err
	}
	c := crew{daemons: []*daemon{st.daemon}, close: client.Close}
	for range n {
		c.workers = append(c.workers, daemonIDWorker{client})
	}
	return c, nil
}

// daemonIDWorker is one caller of the shared client.
type daemonIDWorker struct{ client rueidis.Client }

func (w daemonIDWorker) turn(n *notes) error {
	stage, began := n.now()
	err := w.client.Do(context.Background(), w.client.B().Arbitrary("DNEXTID").Keys(idName).Build()).Error()
	if err != nil {
		return err
	}
	n.acquired(stage, began)
	n.released()
	return nil
}
