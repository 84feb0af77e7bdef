package chaos

// chaos_test.go: the table of mixes, and the runs.
//
// CHAOS_SECONDS or CHAOS_MINUTES is the time of load of all runs together. CHAOS_MIX names
// one mix, or is all, or how many. CHAOS_SEED repeats the draws. CHAOS_PUBLISH=1 puts the
// figures into RESULTS.md if nothing failed. CHAOS_SOAK_MINUTES is the time of the soak,
// which does not run without it. E2E_MUTANTS names mutants to search for (mutants_test.go),
// or is all, which puts those that were not caught into redlock/mutants/RESULTS.md; E2E_SECONDS
// ends the search for some of them sooner. CHAOS_RACE=1 builds the
// daemon with the race detector. CHAOS_BINARY names a daemon that is there already.
// CHAOS_UPGRADE_FROM and CHAOS_UPGRADE_MUTANT are of upgrade_test.go.
//
// A run that fails reports it three times: in place, in its artefacts, and, with the
// variables that repeat it, at the end of all output.
//
// The clients of waits, holds and modes form a clientGroup, with a history and the
// elections of their keys: the waiters, the order in which they were served, and how long a
// key lay idle.

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlockd/redlock/checker"
)

// minRun is the time of load where no more is requested, as in `make test`.
const minRun = 5 * time.Second

// mixes are the runs of `make chaos`.
func mixes() []mix {
	return []mix{
		{"everything small", plan{masters: 3, daemons: 2, clocks: true}, trades(), allFaults},
		{"network", plan{masters: 3, daemons: 3}, append(trades(), foreignTrade()), func(plan) []fault {
			return slices.Concat(networkFaults(), daemonFaults())
		}},
		{"processes", plan{masters: 5, daemons: 2, durable: true}, append(trades(), foreignTrade()), func(plan) []fault {
			return slices.Concat(daemonFaults(), masterFaults(), crashFaults())
		}},
		{"memory", plan{masters: 5, daemons: 3}, trades(), func(plan) []fault {
			return slices.Concat(networkFaults(), masterFaults(), memoryFaults(), memoryFaults())
		}},
		// A counter that a stepped master remembers again takes a while: without
		// counters, clocks step more often.
		{"clocks", plan{masters: 3, daemons: 2, durable: true, clocks: true}, []trade{locksTrade(), worksTrade()}, func(plan) []fault {
			return slices.Concat(networkFaults(), daemonFaults(), crashFaults(), copyFaults(), clockFaults(), clockFaults())
		}},
		{"queues", plan{masters: 3, daemons: 3}, crowds(), func(plan) []fault {
			return slices.Concat(networkFaults(), daemonFaults(), masterFaults())
		}},
		{"queues that forget", plan{masters: 5, daemons: 2, durable: true, clocks: true}, crowds(), allFaults},
		{"queues in peace", plan{masters: 3, daemons: 3}, crowds(), func(plan) []fault { return nil }},
		// A majority is there all the time: no fault explains a lost HOLD, or a ticket lost
		// in a queue.
		{"a minority away", plan{masters: 5, daemons: 3, clocks: true, spared: true}, crowds(), func(p plan) []fault {
			return slices.DeleteFunc(allFaults(p), func(f fault) bool { return f.scope == onDaemon })
		}},
		// DLOCK, clients of one Redis, and the masters themselves.
		{"mixed fleet", plan{masters: 3, daemons: 2, durable: true}, []trade{locksTrade(), dropInTrade(), foreignTrade()}, func(plan) []fault {
			return slices.Concat(networkFaults(), masterFaults(), crashFaults())
		}},
		{"groups", plan{masters: 3, groups: 2, daemons: 3}, append(trades(), waitingTrade(), holdingTrade(), fairTrade(), severalTrade()), func(plan) []fault {
			return slices.Concat(networkFaults(), daemonFaults(), masterFaults(), memoryFaults())
		}},
		// All masters are replaced several times; each daemon follows, though its own list has none of them left.
		{"masters replaced", plan{masters: 3, daemons: 2, durable: true, changed: true}, append(trades(), operatorTrade()), func(plan) []fault {
			return []fault{{"a cut link", 5, onLink, span{}, cut, nil}, {"a stopped daemon", 1, onDaemon, span{time.Millisecond, maxTTL}, stopDaemon, continueDaemon}}
		}},
		// A network that loses single directions of single connections.
		{"one way", plan{masters: 3, daemons: 3}, append(trades(), delaysTrade(), levelsTrade()), func(plan) []fault { return oneWayFaults() }},
		{"starts", plan{masters: 3, daemons: 2, durable: true}, append(trades(), delaysTrade(), levelsTrade()), func(plan) []fault { return startFaults() }},
		{"databases", plan{masters: 3, daemons: 2, databases: 5}, append(inDatabases(5, trade{"locks", 4, newSoleLocks}, crowded(worksTrade(), 2), crowded(delaysTrade(), 3)), idsTrade()), func(plan) []fault {
			return slices.Concat(networkFaults(), daemonFaults(), masterFaults(), memoryFaults())
		}},
		// The first daemon is that of an older commit.
		{"an older daemon", plan{masters: 3, daemons: 3, former: true}, append(trades(), readersTrade(), severalTrade()), func(plan) []fault {
			return slices.Concat(networkFaults(), daemonFaults(), masterFaults(), memoryFaults())
		}},
		// Several flushes of a connection are under way.
		{"distance", plan{masters: 5, daemons: 2, far: 60 * time.Millisecond}, append(trades(), readersTrade(), permitsTrade(), delaysTrade(), levelsTrade()), func(plan) []fault {
			return slices.Concat(networkFaults(), daemonFaults(), masterFaults(), memoryFaults())
		}},
		{"everything", plan{masters: 5, daemons: 3, durable: true, clocks: true}, trades(), allFaults},
	}
}

func TestChaos(t *testing.T) {
	if os.Getenv("CHAOS_SECONDS")+os.Getenv("CHAOS_MINUTES") == "" {
		t.Skip("a run of its own: make chaos")
	}
	t.Parallel()
	chosen := chosenMixes(t)
	span := loadTime(t) / time.Duration(len(chosen))
	var all []figures
	for _, m := range chosen {
		t.Run(strings.ReplaceAll(m.name, " ", "_"), func(t *testing.T) {
			r := newRun(t, m, chosenSeed(t))
			r.chaos(span)
			all = append(all, r.figures)
		})
	}
	t.Logf("\n%s", table(all))
	if os.Getenv("CHAOS_PUBLISH") != "" && !t.Failed() {
		publish(t, span*time.Duration(len(chosen)), all)
	}
}

// A run finds what there is to find: with the guard that makes a master wait
// when it may have forgotten switched off, two clients hold one lock.
func TestChaos_CatchesMastersThatVoteTooSoon(t *testing.T) {
	if testing.Short() {
		t.Skip("processes under faults are evidence: make test-long")
	}
	t.Parallel()
	m := mix{"unguarded", plan{masters: 3, daemons: 2, unguarded: true}, []trade{locksTrade()}, func(plan) []fault {
		return []fault{{"FLUSHALL of all masters", 1, onMaster, span{}, flushEach, nil}}
	}}
	r := newRun(t, m, chosenSeed(t))
	// No daemon begins with two blank masters beside one that carries the configuration. If the
	// daemons are so fast, the next flush makes all of them blank, within max-ttl of a proof.
	r.nemesis.pace = maxTTL / 5
	const rounds = 300 // of a second; one or two suffice on a quiet machine
	var found *checker.Violation
	for range rounds {
		r.load(time.Second, true)
		if errors.As(checker.CheckExclusion(r.record.History()), &found) {
			return
		}
	}
	t.Errorf("masters that forget and vote were never caught in %d rounds", rounds)
}

func flushEach(v *victim) {
	for i := range v.stand.masters {
		flushAll(&victim{stand: v.stand, master: i})
	}
}

// chosenMixes reads CHAOS_MIX; a number is how many, drawn at random.
func chosenMixes(t *testing.T) []mix {
	t.Helper()
	all := mixes()
	name := os.Getenv("CHAOS_MIX")
	count, err := strconv.Atoi(name)
	switch {
	case name == "":
		return all[:1]
	case name == "all":
		return all
	case err == nil && count > 0 && count <= len(all):
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return all[:count]
	default:
		i := slices.IndexFunc(all, func(m mix) bool { return m.name == name })
		if i < 0 {
			var names []string
			for _, m := range all {
				names = append(names, m.name)
			}
			t.Fatalf("CHAOS_MIX: %q, allowed are all, a number up to %d, and %q", name, len(all), names)
		}
		return all[i : i+1]
	}
}

// loadTime of all runs together.
func loadTime(t *testing.T) time.Duration {
	t.Helper()
	for _, unit := range []struct {
		name string
		one  time.Duration
	}{{"CHAOS_SECONDS", time.Second}, {"CHAOS_MINUTES", time.Minute}} {
		if text := os.Getenv(unit.name); text != "" {
			const most = 24 * time.Hour
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || time.Duration(n) > most/unit.one {
				t.Fatalf("%s: %q, allowed are 1 to %d", unit.name, text, most/unit.one)
			}
			return time.Duration(n) * unit.one
		}
	}
	return minRun
}

func chosenSeed(t testing.TB) uint64 {
	t.Helper()
	text := os.Getenv("CHAOS_SEED")
	if text == "" {
		return rand.Uint64()
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("CHAOS_SEED: %q, want a number below 2^64", text)
	}
	return seed
}
