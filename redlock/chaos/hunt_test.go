package chaos

// hunt_test.go: a run that ends with the first thing that is wrong. A mutant is
// hunted by a process of its own, whose daemons are the mutant; what that fails
// with is what the mutant is caught by.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// What the process of a hunt is told by its environment.
const (
	searchName    = "CHAOS_HUNT"
	searchSeconds = "CHAOS_HUNT_SECONDS"
	searchTimeout = "CHAOS_HUNT_PATIENCE"
)

// hunt is a mix, how fast its faults follow one another, and how long the load
// lasts before all is healed and it is looked at what is left.
type search struct {
	mix
	pace  time.Duration
	round time.Duration // 0: as long as there is time
	waits int           // seconds for what must happen once all is healed; 0: patiently
}

// bag is what came of one hunt.
type mutantOutcome struct {
	Caught  bool
	By      string // the check
	Why     string
	Seconds float64 // from the beginning of the load
}

// TestHunt is one hunt, in the process that TestRigMutants starts.
func TestHunt(t *testing.T) {
	name := os.Getenv(searchName)
	if name == "" {
		t.Skip("this is where a mutant is hunted: make rig-mutants")
	}
	hunts := searches()
	i := slices.IndexFunc(hunts, func(h search) bool { return h.name == name })
	seconds, err := strconv.Atoi(os.Getenv(searchSeconds))
	if i < 0 || err != nil {
		t.Fatalf("%s=%q, %s=%q: want the name of a hunt, and a number", searchName, name, searchSeconds, os.Getenv(searchSeconds))
	}
	book, began, took := &ledger{TB: t}, time.Now(), time.Duration(0)
	defer func() { // also where something ends the test
		b := mutantOutcome{Seconds: cmp.Or(took, time.Since(began)).Seconds()}
		if said := book.sentences(); len(said) > 0 {
			b.Caught, b.By, b.Why = true, checkOf(said[0]), said[0]
		}
		line, _ := json.Marshal(b)
		fmt.Printf("\nbag %s\n", line)
	}()
	h := hunts[i]
	r := startRun(book, h.mix, chosenSeed(t))
	r.nemesis.pace, r.long = h.pace, true
	began = time.Now()
	took = r.search(h, time.Duration(seconds)*time.Second)
}

// hunt ends with the first violation, or with the time; it tells how long it took.
func (r *run) search(h search, most time.Duration) time.Duration {
	began := time.Now()
	for {
		left := most - time.Since(began)
		if h.round > 0 {
			left = min(left, h.round)
		}
		found := r.watched(left)
		took := time.Since(began)
		if !found {
			r.settle()
		}
		if r.verdict(); len(r.t.sentences()) > 0 {
			if !found {
				took = time.Since(began)
			}
			return took
		}
		if time.Since(began) >= most {
			return most
		}
	}
}

// settle: all is healed, everybody is served, and nothing is left.
func (r *run) settle() {
	for _, d := range r.stand.daemons {
		d.awaitVotes()
	}
	r.nemesis.allVote()
	if r.stand.keep() > maxKeep {
		return // whoever forgot ends of work is silent for as long
	}
	r.stand.awaitEmpty()
	r.probe()
	r.stand.awaitIdle()
}

// watched is a load that ends when something is seen to be wrong. What looks wrong
// while calls are under way is judged again when they are not.
func (r *run) watched(span time.Duration) (found bool) {
	ctx, cancel := context.WithTimeout(r.t.Context(), span)
	defer cancel()
	var load sync.WaitGroup
	load.Go(func() { r.loadUntil(ctx, len(r.nemesis.faults) > 0) })
	for every := time.Second; pause(ctx, every); {
		began := time.Now()
		if found = r.suspicious(); found {
			cancel()
		}
		every = max(time.Second, 3*time.Since(began)) // judging is not to be the load
	}
	load.Wait()
	return found
}

func (r *run) suspicious() bool {
	if len(r.t.sentences()) > 0 {
		return true
	}
	r.answers.mu.Lock()
	odd := len(r.answers.odd)
	r.answers.mu.Unlock()
	if odd > 0 {
		return true
	}
	return slices.ContainsFunc(r.works, func(w workload) bool {
		_, err := w.verdict()
		return err != nil && !errors.Is(err, errNothingGiven)
	})
}

// checkOf names the check that a sentence is from.
func checkOf(sentence string) string {
	if rule := regexp.MustCompile(`judge: ([a-z ]+) on "`).FindStringSubmatch(sentence); rule != nil {
		return rule[1]
	}
	for _, of := range []struct{ words, check string }{
		{"overtaken", "order"}, {"nobody had the key for", "waits"}, {"that its wait is over", "waits"}, {"circle of waits", "circles"}, {"was refused", "liveness"}, {"a lease was extended of which", "exclusion"}, {"still keeps", "leftovers"}, {"waiters and", "leftovers"},
		{"a lock is not seen", "views"}, {"lost to an extension", "exclusion"}, {"a lock was lost", "continuity"},
		{"no fault explains this answer", "answers"}, {"complains", "log"}, {"no daemon noticed", "clocks"},
		{"a hold ", "HOLD"}, {"told the holder", "HOLD"}, {"after its holder was told", "HOLD"},
	} {
		if strings.Contains(sentence, of.words) {
			return of.check
		}
	}
	return "liveness"
}
