package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// wellFormed reads a chart as any browser would.
func wellFormed(t *testing.T, svg string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
}

func TestLineChart_DrawsWhatIsKnownAndNamesEveryLine(t *testing.T) {
	svg := lineChart{title: "a & b", axis: "pairs", columns: []string{"1", "8", "64"}, lines: []series{
		{"ours", []float64{100, math.NaN(), 20000}},
		{"theirs", []float64{90, 900, 19000}},
		{"gone", []float64{math.NaN(), math.NaN(), math.NaN()}},
	}}.svg()
	wellFormed(t, svg)
	if n := strings.Count(svg, "<circle"); n != 5 {
		t.Errorf("%d points, want 5", n)
	}
	if !strings.Contains(svg, ">ours</text>") || !strings.Contains(svg, ">theirs</text>") || strings.Contains(svg, "gone") {
		t.Error("lines with values have a name beside them, others have none")
	}
	if !strings.Contains(svg, "a &amp; b") || !strings.Contains(svg, "prefers-color-scheme:dark") {
		t.Error("the title is not escaped, or dark readers were forgotten")
	}
}

func TestBarChart_AddsItsPartsUp(t *testing.T) {
	svg := barChart{title: "cost", axis: "µs", parts: []string{"client", "masters"}, bars: []bar{{"ours", []float64{10, 20}}, {"theirs", []float64{100, 50}}}}.svg()
	wellFormed(t, svg)
	if !strings.Contains(svg, ">30.0</text>") || !strings.Contains(svg, ">150</text>") {
		t.Errorf("sums of the bars are missing in\n%s", svg)
	}
}

func TestCharts_WithoutNumbersAreLeftOut(t *testing.T) {
	if svg := (lineChart{columns: []string{"1"}, lines: []series{{"a", []float64{math.NaN()}}}}).svg(); svg != "" {
		t.Errorf("a chart of nothing:\n%s", svg)
	}
	if got := charts(results{}); len(got) != 0 {
		t.Errorf("%d charts of nothing", len(got))
	}
}

func TestPublish_PutsTheChartsBesideTheReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "RESULTS.md")
	r := results{multiplexedName(64): {{pairsPerSecond: 20000, acquireP50: 900, acquireP99: 3000, clientCPU: 10, daemonCPU: 20, mastersCPU: 20}}}
	if err := publish(file, "# Results\n\na machine\n\n## Table\n\nrows\n", r); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"throughput.svg", "latency.svg", "cost.svg"} {
		svg, err := os.ReadFile(filepath.Join(filepath.Dir(file), chartDir, name))
		if err != nil {
			t.Fatal(err)
		}
		wellFormed(t, string(svg))
		if !strings.Contains(string(page), "("+chartDir+"/"+name+")") {
			t.Errorf("the report does not show %s", name)
		}
	}
	if !strings.HasPrefix(string(page), "# Results\n\na machine\n") || !strings.HasSuffix(string(page), "## Table\n\nrows\n") {
		t.Errorf("the report lost something:\n%s", page)
	}
}
