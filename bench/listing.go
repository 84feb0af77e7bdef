// The cost of DLOCKS beside load: one client walks over a hundred thousand locks. Within
// a run the same callers take turns of a quarter of a second with and without the walk.
// So a machine whose speed changes favours neither.
//
// There are two loads, because they show different things. Callers that pause leave the
// machine idle time, as in a deployment. Their longer waits are caused by the walk, and
// this is the target. 64 callers without a pause use every core themselves. A walk then
// takes its share of the processors from them, and their figures are the price of that.

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	listedLocks = 100_000
	// listedMillis is longer than a run, and the maximum TTL of the daemon of this scenario.
	listedMillis = "600000"
	listedPrefix = "bench:listed:"
	takers       = 8   // connections that acquire the locks
	takeAtOnce   = 250 // commands in one write

	listingTurn = 250 * time.Millisecond
	// listingGap is the uncounted time between two turns, in which the acquires of one end.
	listingGap = 20 * time.Millisecond
	stepTries  = 10
	// listingSpan must be long enough for more than a few acquires in the slowest
	// hundredth: with 2 s the ratio was anything from 0.7 to 2.2.
	listingSpan = 8 * time.Second

	pacedCallers = 16
	// maxPause bounds the pause of a caller between two pairs, 5 ms on average. These
	// callers make some 2800 pairs a second, a tenth of what two cores can do.
	maxPause = 10 * time.Millisecond

	pacedListing = "daemon, 16 callers that pause, while 100 000 locks are listed"
	flatListing  = "daemon, 64 callers flat out, while 100 000 locks are listed"
)

// The stages of a run with a walk. Acquires that begin in a gap are not counted.
const (
	stageGap     = stageWarm
	stageWithout = stageSteady
	stageBeside  = stageAfter
)

const (
	pairsWithout figure = "pairs/s without"
	pairsBeside  figure = "pairs/s beside"
	withoutP50   figure = "p50 µs without"
	withoutP99   figure = "p99 µs without"
	besideP50    figure = "p50 µs beside"
	besideP99    figure = "p99 µs beside"
	wholeWalk    figure = "whole walk s" // without the time of the other turns
)

func listingScenarios() []scenario {
	return []scenario{
		{name: pacedListing, page: pageListing, run: beside(listedLocks, pacedCallers, openPaced)},
		{name: flatListing, page: pageListing, run: beside(listedLocks, failureCallers, openMultiplexed)},
	}
}

// beside measures n callers with and without a walk over the locks, in turns. If the span is
// long enough for whole walks, it also checks that no walk misses a lock.
func beside(locks, n int, open opener) runner {
	return func(ctx context.Context, shared *testbed, span time.Duration) (figures, error) {
		tb, err := openListed(ctx, shared, locks)
		if err != nil {
			return nil, err
		}
		defer tb.close()
		conn, err := dialRESP(ctx, tb.daemon.address)
		if err != nil {
			return nil, err
		}
		defer conn.close()
		c, err := open(ctx, tb, n)
		if err != nil {
			return nil, err
		}
		defer c.close()
		l := startLoad(c.workers)
		w := newWalker(conn, locks)
		turns, err := l.takeTurns(ctx, w, max(span, listingSpan))
		l.enter(stageDone)
		failed := l.stop()
		if err != nil {
			return nil, err
		}
		shared.warn(failed)
		f := l.withAndWithout(time.Duration(turns) * listingTurn)
		if w.complete > 0 {
			f[wholeWalk] = w.average().Seconds()
		}
		f[failures] += float64(w.refused)
		if f[pairsWithout] == 0 || f[pairsBeside] == 0 {
			return nil, errors.Join(errors.New("no pair was completed with or without the walk"), failed)
		}
		return f, nil
	}
}

// openListed starts masters and a daemon, and acquires the locks. Their TTL is longer than the
// other daemons of the benchmark allow.
func openListed(ctx context.Context, shared *testbed, locks int) (*testbed, error) {
	tb := &testbed{dir: shared.dir, binary: shared.binary, warnings: shared.warnings}
	err := func() error {
		for range shared.masters {
			m, err := startMaster(ctx, tb.dir, false)
			if err != nil {
				return err
			}
			tb.masters = append(tb.masters, m)
		}
		var err error
		if tb.daemon, err = tb.startDaemon("listing", "--max-ttl", listedMillis+"ms"); err != nil {
			return err
		}
		return errors.Join(tb.daemon.ready(ctx), tb.takeListed(ctx, locks))
	}()
	if err != nil {
		tb.close()
		return nil, err
	}
	return tb, nil
}

// takeListed acquires the locks over several connections.
func (tb *testbed) takeListed(ctx context.Context, locks int) error {
	var all sync.WaitGroup
	failed := make([]error, takers)
	for i := range takers {
		all.Go(func() {
			conn, err := dialRESP(ctx, tb.daemon.address)
			if err != nil {
				failed[i] = err
				return
			}
			defer conn.close()
			for from := i * takeAtOnce; from < locks && failed[i] == nil; from += takers * takeAtOnce {
				failed[i] = takeSome(ctx, conn, from, min(from+takeAtOnce, locks))
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// takeSome acquires the locks with these numbers in one pipeline. Requests that stay
// undecided on a busy machine are undone by the daemon and sent again.
func takeSome(ctx context.Context, conn *respConn, from, to int) error {
	var missing []int
	for i := from; i < to; i++ {
		missing = append(missing, i)
	}
	var last string
	for end := time.Now().Add(ioTimeout); len(missing) > 0; {
		for _, i := range missing {
			conn.queue("DLOCK", listedPrefix+strconv.Itoa(i), listedMillis)
		}
		if err := conn.flush(); err != nil {
			return err
		}
		var again []int
		for _, i := range missing {
			r, err := conn.read()
			if err != nil {
				return err
			}
			if r.Kind != '*' {
				again, last = append(again, i), string(r.Kind)+r.Text
			}
		}
		if missing = again; len(missing) > 0 && (ctx.Err() != nil || time.Now().After(end)) {
			return fmt.Errorf("%d locks that are to be listed were not granted, the last with %s", len(missing), last)
		}
	}
	return nil
}

// takeTurns runs the walker in every second turn. It returns the number of turns with the
// walk, which equals the number without.
func (l *load) takeTurns(ctx context.Context, w *walker, span time.Duration) (turns int, err error) {
	if err := pause(ctx, warmUp); err != nil {
		return 0, err
	}
	for began := time.Now(); time.Since(began) < span; turns++ {
		l.enter(stageWithout)
		err := pause(ctx, listingTurn)
		l.enter(stageGap)
		stop := w.start()
		err = errors.Join(err, pause(ctx, listingGap))
		l.enter(stageBeside)
		err = errors.Join(err, pause(ctx, listingTurn))
		l.enter(stageGap)
		err = errors.Join(err, stop(), pause(ctx, listingGap))
		if err != nil {
			return turns, err
		}
	}
	return turns, nil
}

func (l *load) withAndWithout(span time.Duration) figures {
	f := figures{failures: float64(l.failed)}
	done, acquires := l.sum(stageWithout)
	f[pairsWithout] = float64(done) / span.Seconds()
	f[withoutP50], f[withoutP99] = acquires.quantile(0.50), acquires.quantile(0.99)
	done, acquires = l.sum(stageBeside)
	f[pairsBeside] = float64(done) / span.Seconds()
	f[besideP50], f[besideP99] = acquires.quantile(0.50), acquires.quantile(0.99)
	return f
}

// walker walks over the locks again and again between start and stop.
type walker struct {
	conn     *respConn
	cursor   string
	atEnd    bool   // the last step ended the walk
	listed   []bool // in this walk, by the number of the lock
	complete int    // walks
	refused  int    // steps that ended with NOQUORUM
	walked   time.Duration
	ended    time.Duration // the value of walked at the end of the last complete walk
}

func newWalker(conn *respConn, locks int) *walker {
	return &walker{conn: conn, cursor: "0", listed: make([]bool, locks)}
}

// average is the average duration of a whole walk.
func (w *walker) average() time.Duration { return w.ended / time.Duration(max(w.complete, 1)) }

// start runs the walker until stop is called. stop waits for the step in progress.
func (w *walker) start() (stop func() error) {
	var over atomic.Bool
	failed := make(chan error, 1) // 1: the walker must not wait for stop
	go func() { failed <- w.walk(&over) }()
	return func() error {
		over.Store(true)
		return <-failed
	}
}

func (w *walker) walk(over *atomic.Bool) error {
	before, began := w.walked, time.Now()
	for !over.Load() {
		err := w.step()
		w.walked = before + time.Since(began)
		if err != nil {
			return err
		}
		if w.atEnd {
			if err := w.finish(); err != nil {
				return err
			}
		}
	}
	return nil
}

// step is one DLOCKS without COUNT. On a machine that delays processes, a step may end with
// NOQUORUM. It is then repeated as people would do: first from the same cursor, later from
// the start.
func (w *walker) step() error {
	r, err := w.conn.do("DLOCKS", w.cursor)
	if err != nil && strings.HasPrefix(err.Error(), "NOQUORUM ") {
		if w.refused++; w.refused%stepTries == 0 {
			w.cursor = "0"
			clear(w.listed)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("DLOCKS %s: %w", w.cursor, err)
	}
	if len(r.Items) != 2 {
		return fmt.Errorf("DLOCKS %s answered %d elements, want a cursor and locks", w.cursor, len(r.Items))
	}
	w.cursor = r.Items[0].Text
	w.atEnd = w.cursor == "0"
	const each = 4 // key, mode, holders, ttl
	for at := 0; at+each <= len(r.Items[1].Items); at += each {
		lock := r.Items[1].Items[at : at+each]
		number, ours := strings.CutPrefix(lock[0].Text, listedPrefix)
		if i, err := strconv.Atoi(number); ours && err == nil && i < len(w.listed) && lock[1].Text == "exclusive" {
			w.listed[i] = true
		}
	}
	return nil
}

// finish ends a walk. Every lock was held all the time, so the walk must have listed every
// one.
func (w *walker) finish() error {
	missing := 0
	for _, listed := range w.listed {
		if !listed {
			missing++
		}
	}
	if missing > 0 {
		return fmt.Errorf("a walk over %d locks has missed %d that were held throughout", len(w.listed), missing)
	}
	clear(w.listed)
	w.atEnd = false
	w.complete++
	w.ended = w.walked
	return nil
}

// openPaced opens callers that pause between two locks.
func openPaced(ctx context.Context, tb *testbed, n int) (workerSet, error) {
	c, err := openMultiplexed(ctx, tb, n)
	for i, w := range c.workers {
		c.workers[i] = pacedWorker{w}
	}
	return c, err
}

type pacedWorker struct{ worker }

func (w pacedWorker) turn(n *recorder) error {
	time.Sleep(rand.N(maxPause))
	return w.worker.turn(n)
}
