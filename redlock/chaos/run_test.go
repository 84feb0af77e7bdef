package chaos

// run_test.go: one run, from the first process to the verdict.

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockd/redlock/checker"
)

// mix is what comes together in one run.
type mix struct {
	name   string
	plan   plan
	trades []trade
	faults func(plan) []fault
}

// run is a mix while it lasts.
type run struct {
	t       *ledger
	mix     mix
	seed    uint64
	stand   *stand
	nemesis *nemesis
	record  *checker.Recorder // of all clients of the hot keys; its clock is that of all histories
	answers *answers
	works   []workload // in the order of the mix's trades
	pace    *pace      // of the clients, see caller
	long    bool       // enough is measured to hold it against a ceiling
	figures figures
}

func newRun(test *testing.T, m mix, seed uint64) *run {
	test.Helper()
	return startRun(&ledger{TB: test}, m, seed)
}

func startRun(t *ledger, m mix, seed uint64) *run {
	t.Helper()
	t.Logf("%s: %d masters, %d daemons, CHAOS_SEED=%d", m.name, m.plan.masters, m.plan.daemons, seed)
	r := &run{t: t, mix: m, seed: seed}
	r.stand = newStand(t, m.plan)
	r.record = checker.NewRecorder(nil)
	r.answers = newAnswers(r.record.Now)
	r.nemesis = newNemesis(r.stand, m.faults(m.plan), seed, r.record.Now)
	for _, trade := range m.trades {
		r.works = append(r.works, trade.start(r))
	}
	return r
}

func (r *run) caller(number int) *caller {
	return &caller{number: number, stand: r.stand, pace: r.pace, answers: r.answers, random: rand.New(rand.NewPCG(r.seed, uint64(number)))}
}

// chaos is the whole run.
func (r *run) chaos(span time.Duration) {
	defer r.keepIfFailed()
	r.long = span > minRun
	r.load(span*4/5, len(r.nemesis.faults) > 0)
	for _, d := range r.stand.daemons {
		d.awaitVotes()
	}
	r.nemesis.allVote()
	r.load(span/5, false) // and what is promised only where nothing fails
	r.probe()
	r.stand.awaitEmpty()
	r.stand.awaitIdle()
	if r.mix.plan.changed { // the daemons and the links are of the first list
		r.verdict()
		r.figures.take(r, span)
		return
	}
	r.recover()
	r.stand.awaitEmpty()
	r.verdict()
	r.compareWithNew()
	r.figures.take(r, span)
}

// load has the clients work, and the nemesis strike, for the span.
func (r *run) load(span time.Duration, faults bool) {
	ctx, cancel := context.WithTimeout(r.t.Context(), span)
	defer cancel()
	r.loadUntil(ctx, faults)
}

func (r *run) loadUntil(ctx context.Context, faults bool) {
	var all sync.WaitGroup
	all.Go(func() { r.nemesis.watchMachine(ctx) })
	number := 0
	for i, trade := range r.mix.trades {
		for range trade.clients {
			number++
			c := r.caller(number)
			all.Go(func() {
				defer c.leave()
				r.works[i].work(ctx, c)
			})
		}
	}
	if faults {
		r.nemesis.strike(ctx)
	}
	all.Wait()
}

// probe: with everything healed, every daemon serves everything. What was left
// on the masters blocks no client for longer than the longest lease.
func (r *run) probe() {
	r.t.Helper()
	began := time.Now()
	defer func() { r.t.Logf("everything was served again within %v", time.Since(began).Round(time.Millisecond)) }()
	for at, d := range r.stand.daemons {
		c := r.caller(0)
		c.pinned = d
		for i, trade := range r.mix.trades {
			if err := r.works[i].probe(c); err != nil {
				r.t.Errorf("all is healed, and daemon %d does not serve %s: %v", at, trade.name, err)
			}
		}
		c.leave()
	}
}

// verdict is that of all checks.
func (r *run) verdict() {
	r.t.Helper()
	for i, trade := range r.mix.trades {
		tally, err := r.works[i].verdict()
		r.t.Logf("%s: %s", trade.name, tally)
		if err != nil {
			r.t.Errorf("%s: %v", trade.name, err)
		}
	}
	r.t.Logf("faults: %s", r.nemesis.tally())
	r.t.Logf("calls that were not decided: %v", r.answers.codes)
	for _, odd := range r.answers.odd {
		r.t.Errorf("no fault explains this answer: %s", odd)
	}
	for i, d := range r.stand.daemons {
		if text := d.complaints(); text != "" {
			r.t.Errorf("daemon %d complains:\n%s", i, text)
		}
	}
}

// keepIfFailed writes down what is needed to understand a failure.
func (r *run) keepIfFailed() {
	if !r.t.Failed() {
		return
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("chaos-%s-%d", strings.ReplaceAll(r.mix.name, " ", "-"), r.seed))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		r.t.Error(err)
		return
	}
	keep := func(name string, dump func(io.Writer) error) {
		file, err := os.Create(filepath.Join(dir, name))
		if err == nil {
			err = dump(file)
			file.Close()
		}
		if err != nil {
			r.t.Errorf("writing %s: %v", name, err)
		}
	}
	sentences := r.t.sentences()
	keep("failures", func(w io.Writer) error {
		_, err := fmt.Fprintln(w, strings.Join(sentences, "\n"))
		return err
	})
	keep("faults", r.nemesis.dump)
	for i, trade := range r.mix.trades {
		keep("history-"+trade.name, r.works[i].dump)
	}
	for i, d := range r.stand.daemons {
		keep(fmt.Sprintf("daemon-%d", i), func(w io.Writer) error {
			_, err := io.WriteString(w, d.Output())
			return err
		})
	}
	failed.add(r.mix, r.seed, dir, sentences)
	r.t.Logf("faults, histories and logs are in %s; times count from %s", dir, time.Now().Add(-r.record.Now()).Format(time.RFC3339Nano))
}
