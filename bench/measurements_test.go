package main

import (
	"errors"
	"slices"
	"testing"
)

func TestMeasurements_KeepsTheRoundsPairedWhenARunFails(t *testing.T) {
	b := newMeasurements()
	broken := errors.New("connection refused")
	for round, fails := range []bool{false, true, false} {
		b.record("theirs", func() (figures, error) { return figures{pairsPerSecond: float64(10 * (round + 1))}, nil })
		b.record("ours", func() (figures, error) {
			if fails {
				return nil, broken
			}
			return figures{pairsPerSecond: 60}, nil
		})
	}
	if got := b.results.ratios("ours", "theirs", pairsPerSecond); !slices.Equal(got, []float64{6, 2}) {
		t.Errorf("ratios %v, want those of the first and the third round", got)
	}
	if !errors.Is(b.failed, broken) || b.missing["ours"] == "" {
		t.Errorf("the failure is %v, and the report has %q", b.failed, b.missing["ours"])
	}
}

func TestMeasurements_TriesWhatIsNotInstalledOnce(t *testing.T) {
	b := newMeasurements()
	tried := 0
	for range 3 {
		b.record("peer", func() (figures, error) {
			tried++
			return nil, &unavailable{"it is not installed"}
		})
	}
	if tried != 1 || b.failed != nil || b.missing["peer"] != "it is not installed" || len(b.results) != 0 {
		t.Errorf("tried %d times, failure %v, missing %v, results %v", tried, b.failed, b.missing, b.results)
	}
}

func TestAims_AreAboutScenariosThatExist(t *testing.T) {
	names := map[string]bool{"": true}
	for _, s := range scenarios() {
		names[s.name] = true
	}
	for _, a := range aims() {
		if !names[a.scenario] || !names[a.peer] {
			t.Errorf("%s: there is no scenario %q, or no peer %q", a.what, a.scenario, a.peer)
		}
	}
	chosen, err := choose(scenarios(), aimed())
	if err != nil || len(chosen) >= len(scenarios()) {
		t.Errorf("a quick run has %d scenarios of %d, %v", len(chosen), len(scenarios()), err)
	}
}

func TestAims_ReportWhetherTheyAreMet(t *testing.T) {
	r := results{
		"ours":   {{pairsPerSecond: 60, afterP99: 30, beforeP99: 10}, {pairsPerSecond: 90, afterP99: 10, beforeP99: 10}},
		"theirs": {{pairsPerSecond: 10}, {pairsPerSecond: 10}},
	}
	for want, a := range map[string]aim{
		"| a | ≥ 6.00 | 7.50 (6.00-9.00) | met |\n":        {what: "a", scenario: "ours", name: pairsPerSecond, peer: "theirs", atLeast: true, bound: 6},
		"| a | ≥ 8.00 | 7.50 (6.00-9.00) | **missed** |\n": {what: "a", scenario: "ours", name: pairsPerSecond, peer: "theirs", atLeast: true, bound: 8},
		"| a | ≤ 2.00 | 2.00 (1.00-3.00) | met |\n":        {what: "a", scenario: "ours", name: afterP99, before: beforeP99, bound: 2},
		"| a | ≤ 50.0 | 75.0 (60.0-90.0) | **missed** |\n": {what: "a", scenario: "ours", name: pairsPerSecond, bound: 50},
	} {
		if got, ok := a.line(r); !ok || got != want {
			t.Errorf("%q, %t, want %q", got, ok, want)
		}
	}
	if _, ok := (aim{scenario: "none", name: pairsPerSecond}).line(r); ok {
		t.Error("there is a line about something that was not measured")
	}
}
