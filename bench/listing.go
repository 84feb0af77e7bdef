// DLOCKS beside load: does it stand in anybody's way when somebody goes over a
// hundred thousand locks? The same callers with a walker beside them and without
// one take turns of a quarter of a second within a run, so that a machine whose
// speed changes favours neither.
//
// Two loads, because they tell different things. Callers that pause leave the
// machine room, as in a deployment: what they wait for longer is what a walk
// makes them wait for, and this is what is promised. 64 callers flat out use up
// every core by themselves; a walk then takes its share of the processors from
// them, whatever it does, and theirs is the price of that.
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
	// listedMillis outlasts a run; it is the longest ttl of these masters' daemon.
	listedMillis = "600000"
	listedPrefix = "bench:listed:"
	takers       = 8   // connections that take the locks
	takeAtOnce   = 250 // commands in a write of each

	listingTurn = 250 * time.Millisecond
	// listingGap is left out between two turns: what one began ends in it.
	listingGap = 20 * time.Millisecond
	stepTries  = 10
	// listingSpan is as long as the hundredth of the slowest acquires takes to be more
	// than a few: with 2 s the ratio was anything from 0.7 to 2.2.
	listingSpan = 8 * time.Second

	pacedCallers = 16
	// longestPause of a caller between two pairs, 5 ms in the middle: with these
	// callers some 2800 pairs a second, a tenth of what two cores can do.
	longestPause = 10 * time.Millisecond

	pacedListing = "daemon, 16 callers that pause, while 100 000 locks are listed"
	flatListing  = "daemon, 64 callers flat out, while 100 000 locks are listed"
)

// The stages of a run with a walk. Nothing that begins in a gap is counted.
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
	wholeWalk    figure = "whole walk s" // only the time in which it was let
)

func listingScenarios() []scenario {
	return []scenario{
		{name: pacedListing, page: pageListing, run: beside(listedLocks, pacedCallers, openPaced)},
		{name: flatListing, page: pageListing, run: beside(listedLocks, failureCallers, openMultiplexed)},
	}
}

// beside measures n callers with and without a walk over the locks, in turns.
// Spans that are long enough for whole walks show that none misses a lock.
func beside(locks, n int, open opener) runner {
	return func(ctx context.Context, shared *stand, span time.Duration) (figures, error) {
		st, err := openListed(ctx, shared, locks)
		if err != nil {
			return nil, err
		}
		defer st.close()
		conn, err := dialRESP(ctx, st.daemon.address)
		if err != nil {
			return nil, err
		}
		defer conn.close()
		c, err := open(ctx, st, n)
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
		shared.note(failed)
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

// openListed makes masters and a daemon of which the locks are held: the ttl is
// longer than other daemons of the bench allow.
func openListed(ctx context.Context, shared *stand, locks int) (*stand, error) {
	st := &stand{dir: shared.dir, binary: shared.binary, remarks: shared.remarks}
	err := func() error {
		for range shared.masters {
			m, err := startMaster(ctx, st.dir, false)
			if err != nil {
				return err
			}
			st.masters = append(st.masters, m)
		}
		var err error
		if st.daemon, err = st.startDaemon("listing", "--max-ttl", listedMillis+"ms"); err != nil {
			return err
		}
		return errors.Join(st.daemon.ready(ctx), st.takeListed(ctx, locks))
	}()
	if err != nil {
		st.close()
		return nil, err
	}
	return st, nil
}

// takeListed takes the locks over several connections, each its share.
func (st *stand) takeListed(ctx context.Context, locks int) error {
	var all sync.WaitGroup
	failed := make([]error, takers)
	for i := range takers {
		all.Go(func() {
			conn, err := dialRESP(ctx, st.daemon.address)
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

// takeSome takes the locks with these numbers in one pipeline. What is undecided
// on a busy machine has been given back and is asked for again.
func takeSome(ctx context.Context, conn *respConn, from, to int) error {
	var missing []int
	for i := from; i < to; i++ {
		missing = append(missing, i)
	}
	var last string
	for end := time.Now().Add(talkPatience); len(missing) > 0; {
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
			if r.kind != '*' {
				again, last = append(again, i), string(r.kind)+r.text
			}
		}
		if missing = again; len(missing) > 0 && (ctx.Err() != nil || time.Now().After(end)) {
			return fmt.Errorf("%d locks that are to be listed were not granted, the last with %s", len(missing), last)
		}
	}
	return nil
}

// takeTurns lets the walker walk in every second turn. It returns how many turns
// each had.
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

// walker goes over the locks again and again while it is let.
type walker struct {
	conn     *respConn
	cursor   string
	over     bool   // the step that was answered last was the walk's last
	told     []bool // in this walk, by the number of the lock
	complete int    // walks
	refused  int    // steps that could not be answered
	walked   time.Duration
	ended    time.Duration // of what it walked, when the last walk was complete
}

func newWalker(conn *respConn, locks int) *walker {
	return &walker{conn: conn, cursor: "0", told: make([]bool, locks)}
}

// average is how long a whole walk took.
func (w *walker) average() time.Duration { return w.ended / time.Duration(max(w.complete, 1)) }

// start lets it walk until stop is called, which waits for the step under way.
func (w *walker) start() (stop func() error) {
	var over atomic.Bool
	failed := make(chan error, 1) // 1: nobody may have to wait for stop
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
		if w.over {
			if err := w.finish(); err != nil {
				return err
			}
		}
	}
	return nil
}

// step is one DLOCKS as it comes, without COUNT. What no quorum has answered, as
// happens where a machine keeps processes waiting, is asked again as people would
// do: at first where it was, and then from the start.
func (w *walker) step() error {
	r, err := w.conn.do("DLOCKS", w.cursor)
	if err != nil && strings.HasPrefix(err.Error(), "NOQUORUM ") {
		if w.refused++; w.refused%stepTries == 0 {
			w.cursor = "0"
			clear(w.told)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("DLOCKS %s: %w", w.cursor, err)
	}
	if len(r.items) != 2 {
		return fmt.Errorf("DLOCKS %s answered %d elements, want a cursor and locks", w.cursor, len(r.items))
	}
	w.cursor = r.items[0].text
	w.over = w.cursor == "0"
	const each = 4 // key, mode, holders, ttl
	for at := 0; at+each <= len(r.items[1].items); at += each {
		lock := r.items[1].items[at : at+each]
		number, ours := strings.CutPrefix(lock[0].text, listedPrefix)
		if i, err := strconv.Atoi(number); ours && err == nil && i < len(w.told) && lock[1].text == "exclusive" {
			w.told[i] = true
		}
	}
	return nil
}

// finish ends a walk: every lock was held throughout, so every one must have
// been told.
func (w *walker) finish() error {
	missing := 0
	for _, told := range w.told {
		if !told {
			missing++
		}
	}
	if missing > 0 {
		return fmt.Errorf("a walk over %d locks has missed %d that were held throughout", len(w.told), missing)
	}
	clear(w.told)
	w.over = false
	w.complete++
	w.ended = w.walked
	return nil
}

// openPaced has callers that do something else between two locks.
func openPaced(ctx context.Context, st *stand, n int) (crew, error) {
	c, err := openMultiplexed(ctx, st, n)
	for i, w := range c.workers {
		c.workers[i] = pacedWorker{w}
	}
	return c, err
}

type pacedWorker struct{ worker }

func (w pacedWorker) turn(n *notes) error {
	time.Sleep(rand.N(longestPause))
	return w.worker.turn(n)
}
