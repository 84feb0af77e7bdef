package sim

// Counts what each command costs in round trips to distant masters, in virtual time: so the
// figures do not depend on the machine, and are compared with those that are published.

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/redlock"
)

const (
	tripsPage  = "../../pool/README.md"
	tripsWay   = 20 * time.Millisecond // to each master, one way
	tripsTrip  = 2 * tripsWay
	tripsStart = "| request |"
)

// unobserved is an observer that compares nothing.
type unobserved struct{}

func (unobserved) begins()                                      {}
func (unobserved) executed(*flight, []string, pool.Reply, bool) {}
func (unobserved) touched(string)                               {}
func (unobserved) rests()                                       {}

// tripsRow is one request of the table.
type tripsRow struct {
	name string
	// prepare has the steps before the clock starts.
	prepare []func(d, other engine, key redlock.Key)
	// measure sends the request; its answer, or the one that follows from it, calls done.
	measure func(d, other engine, key redlock.Key, done func(error))
}

const (
	tripsTTL   = 900 * time.Millisecond
	tripsToken = redlock.Token("a-token-of-the-caller")
)

func tripsRows() []tripsRow {
	lock := func(key redlock.Key, change func(*redlock.LockRequest)) redlock.LockRequest {
		r := redlock.LockRequest{Key: key, TTL: tripsTTL}
		change(&r)
		return r
	}
	taking := func(name string, change func(*redlock.LockRequest)) tripsRow {
		return tripsRow{name: name, measure: func(d, _ engine, key redlock.Key, done func(error)) {
			d.Lock(nil, lock(key, change), func(_ redlock.Grant, err error) { done(err) })
		}}
	}
	type step = func(d, other engine, key redlock.Key)
	holds := func(d, _ engine, key redlock.Key) {
		d.Lock(nil, lock(key, func(r *redlock.LockRequest) { r.Token = tripsToken }), func(redlock.Grant, error) {})
	}
	held := []step{holds}
	// A waiter is there; what is measured ends when it has the lock.
	waiter := map[redlock.Key]func(error){}
	waited := func(at func(d, other engine) engine, change func(*redlock.LockRequest)) []step {
		return []step{holds, func(d, other engine, key redlock.Key) {
			at(d, other).Wait(nil, lock(key, func(r *redlock.LockRequest) { r.Wait = 5 * time.Second; change(r) }),
				func(_ redlock.Grant, err error) { waiter[key](err) })
		}}
	}
	released := func(d, _ engine, key redlock.Key, done func(error)) {
		waiter[key] = done
		d.Unlock(nil, redlock.UnlockRequest{Key: key, Token: tripsToken}, func(bool, error) {})
	}
	same := func(d, _ engine) engine { return d }
	elsewhere := func(_, other engine) engine { return other }
	plain := func(*redlock.LockRequest) {}
	token := map[redlock.Key]redlock.Token{}
	working := []step{func(d, _ engine, key redlock.Key) {
		d.Work(nil, redlock.WorkRequest{Key: key, Timeout: tripsTTL, Max: 3}, func(w redlock.Work, _ error) { token[key] = w.Token })
	}}
	return []tripsRow{
		taking("`DLOCK`, `SET NX PX`", plain),
		taking("`DLOCK … TOKEN`", func(r *redlock.LockRequest) { r.Token = tripsToken }),
		taking("`DLOCK … SHARED`", func(r *redlock.LockRequest) { r.Mode = redlock.Readers }),
		taking("`DLOCK … LIMIT 4`", func(r *redlock.LockRequest) { r.Mode = redlock.PermitsOf(4) }),
		taking("`DLOCK … FAIR`", func(r *redlock.LockRequest) { r.Fair = true }),
		taking("`DLOCK … HOLD`", func(r *redlock.LockRequest) {
			r.Hold = &redlock.HoldTerms{OnEnd: func(redlock.Grant, error, time.Duration) {}}
		}),
		taking("`DMLOCK` of three keys", func(r *redlock.LockRequest) { r.More = []redlock.Key{r.Key + "b", r.Key + "c"} }),
		{"`DLOCK … WAIT`, the key is free", nil, func(d, _ engine, key redlock.Key, done func(error)) {
			d.Wait(nil, lock(key, func(r *redlock.LockRequest) { r.Wait = time.Second }), func(_ redlock.Grant, err error) { done(err) })
		}},
		{"`DEXTEND`, a renewal of `HOLD`", held, func(d, _ engine, key redlock.Key, done func(error)) {
			d.Extend(nil, redlock.ExtendRequest{Key: key, Token: tripsToken, TTL: tripsTTL}, func(_ redlock.Grant, err error) { done(err) })
		}},
		{"`DUNLOCK`, a release script", held, func(d, _ engine, key redlock.Key, done func(error)) {
			d.Unlock(nil, redlock.UnlockRequest{Key: key, Token: tripsToken}, func(_ bool, err error) { done(err) })
		}},
		{"`GET`, `PTTL`", held, func(d, _ engine, key redlock.Key, done func(error)) {
			d.View(nil, 0, key, func(_ redlock.View, err error) { done(err) })
		}},
		{"`DEL`", held, func(d, _ engine, key redlock.Key, done func(error)) {
			d.Write(nil, redlock.WriteRequest{Key: key, Effect: redlock.WriteDeletes}, func(_ bool, err error) { done(err) })
		}},
		{"`DNEXTID`", nil, func(d, _ engine, key redlock.Key, done func(error)) {
			d.NextID(nil, redlock.IDRequest{Name: key, Count: 1}, func(_ int64, err error) { done(err) })
		}},
		{"`DWORK`", nil, func(d, _ engine, key redlock.Key, done func(error)) {
			d.Work(nil, redlock.WorkRequest{Key: key, Timeout: tripsTTL, Max: 3}, func(_ redlock.Work, err error) { done(err) })
		}},
		{"`DWORKDONE`", working, func(d, _ engine, key redlock.Key, done func(error)) {
			d.WorkDone(nil, redlock.WorkEndRequest{Key: key, Token: token[key]}, func(_ bool, err error) { done(err) })
		}},
		{"release until the next `WAIT` of this daemon has it", waited(same, plain), released},
		{"until the next `WAIT` of another daemon has it", waited(elsewhere, plain), released},
		{"release until the next `FAIR WAIT` of this daemon has it", waited(same, func(r *redlock.LockRequest) { r.Fair = true }), released},
		{"until the next `FAIR WAIT` of another daemon has it", waited(elsewhere, func(r *redlock.LockRequest) { r.Fair = true }), released},
	}
}

// tripsWorld is one with five distant masters and two daemons.
func tripsWorld(t *testing.T, lab *Lab) *World {
	t.Helper()
	w := newWorld(&Scenario{
		Name: "trips", Masters: 5, Daemons: 2, Keys: 1, MinTTL: 60 * time.Millisecond, MaxTTL: time.Second, MaxKeep: 4 * time.Second,
		MaxWait: 5 * time.Second, Reliable: true, Announcements: true, Distances: []time.Duration{tripsWay},
	}, 1, lab)
	w.observer = unobserved{}
	if !w.begin() {
		t.Fatal(w.violation)
	}
	w.calm = true
	w.run(w.now + time.Second) // the lanes learn how far the masters are
	return w
}

// play sends the request for each of some keys, one after the other within a round trip, and returns
// the longest time until an answer, in round trips to the nearest half: what is less is the pause
// between two flushes, and jitter.
func (row tripsRow) play(t *testing.T, w *World, keys int) float64 {
	t.Helper()
	d, other := w.daemons[0], w.daemons[1]
	each := func(do func(key redlock.Key)) {
		for i := range keys {
			key := redlock.Key(fmt.Sprintf("%d of %d", i, keys))
			w.after(tripsTrip*time.Duration(i)/time.Duration(keys), d, func() { w.spawn(d, func() { do(key) }) })
		}
		w.run(w.now + 5*tripsTrip)
	}
	for _, step := range row.prepare {
		each(func(key redlock.Key) { step(d.engine, other.engine, key) })
	}
	var took []float64
	each(func(key redlock.Key) {
		since := w.now
		row.measure(d.engine, other.engine, key, func(err error) {
			if err != nil {
				t.Errorf("%s: %v", row.name, err)
			}
			took = append(took, float64(w.now-since)/float64(tripsTrip))
		})
	})
	if len(took) != keys || w.violation != nil {
		t.Fatalf("%s: %d of %d answers, %v", row.name, len(took), keys, w.violation)
	}
	return math.Round(2*slices.Max(took)) / 2
}

// Compares the published figures with what is counted; REDLOCKD_UPDATE=1 writes them.
func TestRoundTrips_OfEachCommandAreThosePublished(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-long")
	}
	lab := NewLab()
	type trips struct{ alone, slowest float64 }
	var figures []trips // in the order of the rows
	requests := map[trips][]string{}
	for _, row := range tripsRows() {
		w := tripsWorld(t, lab)
		n := trips{row.play(t, w, 1), row.play(t, w, 64)}
		w.finish()
		if requests[n] == nil {
			figures = append(figures, n)
		}
		requests[n] = append(requests[n], row.name)
	}
	table := tripsStart + " one caller | the slowest of 64 callers within a round trip |\n|---|---|---|\n"
	for _, n := range figures {
		table += fmt.Sprintf("| %s | %.4g | %.4g |\n", strings.Join(requests[n], "; "), n.alone, n.slowest)
	}
	page, err := os.ReadFile(tripsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), tripsStart)
	if !found {
		t.Fatalf("%s has no line that begins with %q", tripsPage, tripsStart)
	}
	_, after, _ := strings.Cut(rest, "\n\n")
	if want := before + table + "\n" + after; want != string(page) {
		if os.Getenv("REDLOCKD_UPDATE") == "" {
			t.Fatalf("counted, and not what %s has (REDLOCKD_UPDATE=1 writes it):\n%s", tripsPage, table)
		}
		if err := os.WriteFile(tripsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
