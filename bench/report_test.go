package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestResults_CompareWithinARound(t *testing.T) {
	r := results{
		"ours":   {{pairsPerSecond: 100}, {pairsPerSecond: 10}, {pairsPerSecond: 40}},
		"theirs": {{pairsPerSecond: 10}, {pairsPerSecond: 1}, {pairsPerSecond: 20}},
	}
	if got := r.ratios("ours", "theirs", pairsPerSecond); !slices.Equal(got, []float64{10, 10, 2}) {
		t.Errorf("ratios %v", got)
	}
	if got, ok := r.median("ours", pairsPerSecond); !ok || got != 40 {
		t.Errorf("median %g, %t", got, ok)
	}
	if got, ok := median([]float64{4, 1, 3, 2}); !ok || got != 2.5 {
		t.Errorf("median of an even number of values %g, %t", got, ok)
	}
	if _, ok := r.median("ours", mallocs); ok {
		t.Error("there is a median of nothing")
	}
}

func TestReport_LeavesEmptyWhatWasNotMeasured(t *testing.T) {
	rows := []scenario{{name: "theirs", page: pagePairs}, {name: "ours", page: pagePairs, peer: "theirs"}, {name: "gone", page: pagePairs}}
	page := report("a machine", rows, results{
		"ours":   {{pairsPerSecond: 81234, acquireP50: 12.3, failures: 2}, {failures: 1}},
		"theirs": {{pairsPerSecond: 10000, acquireP50: 0}},
	}, map[string]string{"gone": "it is not installed"}, false)
	for _, line := range []string{
		"| ours | 81234 | 12.3 |  | 8.12 (8.12-8.12) |  |  | 3 |",
		"| theirs | 10000 | 0 |  |  |  |  |  |",
		"- gone: it is not installed",
	} {
		if !strings.Contains(page, line+"\n") {
			t.Errorf("there is no line %q in\n%s", line, page)
		}
	}
	if strings.Contains(page, "| gone |") {
		t.Error("a scenario without figures has a row")
	}
	if strings.Contains(page, "Masters fail") {
		t.Error("a table without rows is shown")
	}
}

func TestReport_ThePageHasTenRowsATable(t *testing.T) {
	for _, table := range tables() {
		rows := 0
		for _, s := range scenarios() {
			if slices.Contains(table.pages, s.page) && table.onPage(s) {
				rows++
			}
		}
		if rows == 0 != slices.Contains(byTarget, table.title) || rows > maxRows {
			t.Errorf("%s: %d rows, allowed are 1 to %d, and 0 where a target has the figure", table.title, rows, maxRows)
		}
	}
	rows := []scenario{{name: redsyncName(64), page: pagePairs}, {name: redsyncName(8), page: pagePairs}}
	measured := results{redsyncName(64): {{pairsPerSecond: 1}}, redsyncName(8): {{pairsPerSecond: 1}}}
	if page := report("", rows, measured, nil, true); !strings.Contains(page, redsyncName(64)) || strings.Contains(page, redsyncName(8)) {
		t.Errorf("the page has other rows than those of its main scenarios:\n%s", page)
	}
	if page := report("", rows, measured, nil, true); !strings.Contains(page, "| scenario | pairs/s |\n") {
		t.Errorf("the page has columns without a figure, or details:\n%s", page)
	}
	if output := report("", rows, measured, nil, false); !strings.Contains(output, "| p50 × redsync |") {
		t.Errorf("the output of a run lacks a column:\n%s", output)
	}
	if output := report("", rows, measured, nil, false); !strings.Contains(output, redsyncName(8)) {
		t.Errorf("the output of a run lacks a row:\n%s", output)
	}
}

func TestShow_GivesThreeDigitsThatMatter(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.00123: "0.0012", 0.0461: "0.0461", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 81234: "81234"} {
		if got := show(v); got != want {
			t.Errorf("show(%g) is %q, want %q", v, got, want)
		}
	}
}

func TestScenarios_HaveNamesOfTheirOwnAndPeersThatExist(t *testing.T) {
	names := map[string]bool{"": true}
	for _, s := range scenarios() {
		if names[s.name] {
			t.Errorf("two scenarios are called %q, or one has no name", s.name)
		}
		names[s.name] = true
	}
	for _, s := range scenarios() {
		if !names[s.peer] {
			t.Errorf("%q is compared with %q, which does not exist", s.name, s.peer)
		}
	}
}

func TestChoose_BringsThePeersAlong(t *testing.T) {
	chosen, err := choose(scenarios(), regexp.MustCompile("^engine.* 8 callers$"))
	if err != nil || len(chosen) != 2 || chosen[0].name != redsyncName(8) || chosen[1].name != chosen[0].peer && chosen[1].peer != chosen[0].name {
		t.Errorf("chosen %v, %v", chosen, err)
	}
	if _, err := choose(scenarios(), regexp.MustCompile("nonsense")); err == nil {
		t.Error("a pattern that matches nothing is accepted")
	}
}

func TestSettings_NameWhatIsNotAllowed(t *testing.T) {
	for _, args := range []string{"-rounds=0", "-seconds=0", "-seconds=3600", "-masters=4", "-only=(", "word"} {
		name, _, _ := strings.Cut(args, "=")
		if _, err := readSettings([]string{args}, io.Discard); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// Nearly every kind of scenario that needs nothing installed runs once, for a moment:
// that the figures are there is checked, not how large they are.
func TestRun_MeasuresEveryKindOfScenario(t *testing.T) {
	var out strings.Builder
	only := "^(engine|daemon|floor|bsm|rueidislock).* 8 callers$|client, 1 caller$|TLS|depth 16|two daemons|no register|" +
		"^engine, .* 1 caller$|^one key: (daemon|rueidislock)|^ids: .* memory|^ids: .*engine|stopped|killed"
	if err := run(t.Context(), []string{"-rounds", "1", "-seconds", "0.2", "-masters", "3", "-only", only}, &out); err != nil {
		t.Fatal(err)
	}
	chosen, err := choose(scenarios(), regexp.MustCompile(only))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range chosen {
		rows := regexp.MustCompile(fmt.Sprintf(`(?m)^\| %s \| .*\d`, regexp.QuoteMeta(s.name))).FindAllString(out.String(), -1)
		want := 0
		for _, table := range tables() {
			if slices.Contains(table.pages, s.page) {
				want++
			}
		}
		if len(rows) != want {
			t.Errorf("%q has %d rows with figures, want %d", s.name, len(rows), want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

func TestRun_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	first := writerFunc(func(p []byte) (int, error) {
		cancel() // after the first run
		return len(p), nil
	})
	err := run(ctx, []string{"-rounds", "1000", "-seconds", "0.1", "-only", "^floor.*1 caller$"}, first)
	if err == nil || ctx.Err() == nil {
		t.Errorf("run ended with %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// A share of 0.68 allows client and masters, 40 µs, 58.8 µs in all. A throughput of half of the
// peer's, which takes 30 µs, allows 60 µs.
func TestMissedTargets_HasMissedAimsOnly(t *testing.T) {
	missed := figures{boundShare: 0.6, clientCPU: 10, daemonCPU: 20, mastersCPU: 30, allCPU: 60}
	limit := figures{pairsPerSecond: 10, allCPU: 80}
	r := results{multiplexedName(256): {missed}, commandName("LIMIT 256, one key"): {limit}, multiplexedName(64): {{pairsPerSecond: 100, allCPU: 30, boundShare: 0.7}}}
	for _, want := range []string{
		"| one multiplexed client, 256 callers: share of the bound | 10.0 | 20.0 | 30.0 | 60.0 | 58.8 |\n",
		"| LIMIT 256, one key, 64 callers: throughput × plain | 0 | 0 | 0 | 80.0 | 60.0 |\n",
	} {
		if got := missedTargets(r); !strings.Contains(got, want) {
			t.Errorf("there is no line %q in\n%s", want, got)
		}
	}
	missed[boundShare], limit[pairsPerSecond] = 0.68, 50
	if got := missedTargets(r); got != "" {
		t.Errorf("an aim that was met: %s", got)
	}
}
