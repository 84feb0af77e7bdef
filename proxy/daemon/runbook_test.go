package daemon

// Tests that alerts, dashboard and runbook name existing metrics and states, and leave none out.

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v2"

	"redlockd/configs"
	"redlockd/pool"
)

var metricName = regexp.MustCompile(`\bredlockd_[a-z_]+\b`)

// metricNames are all that a daemon serves, the parts of histograms included.
func metricNames(t *testing.T) []string {
	t.Helper()
	o := operate(t, "--embedded", "3")
	status, text := o.get(t, "/metrics", "")
	if status != http.StatusOK {
		t.Fatal(status, text)
	}
	names := []string{"redlockd_panics_total"}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			names = append(names, metricName.FindAllString(line, 1)...)
		}
	}
	return names
}

func TestMetrics_ThatAlertsDashboardAndRunbookNameAreServed(t *testing.T) {
	served := metricNames(t)
	for _, name := range []string{"alerts.yaml", "dashboard.json", "RUNBOOK.md"} {
		found := metricName.FindAllString(file(t, name), -1)
		if len(found) == 0 {
			t.Errorf("%s names no metric", name)
		}
		for _, metric := range found {
			isHistogram := name == "RUNBOOK.md" && slices.Contains(served, metric+"_bucket")
			if !slices.Contains(served, metric) && !isHistogram {
				t.Errorf("%s names %s, which is not served", name, metric)
			}
		}
	}
}

// rules is a Prometheus rule file.
type rules struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr, For    string
			Labels, Annotations map[string]string
		}
	}
}

func TestAlerts_AreCompleteAndInTheRunbook(t *testing.T) {
	var all rules
	if err := yaml.UnmarshalStrict([]byte(file(t, "alerts.yaml")), &all); err != nil {
		t.Fatal(err)
	}
	runbook := file(t, "RUNBOOK.md")
	for _, rule := range all.Groups[0].Rules {
		switch {
		case !balanced(rule.Expr):
			t.Errorf("%s: brackets in %s", rule.Alert, rule.Expr)
		case rule.Annotations["summary"] == "" || !slices.Contains([]string{"critical", "warning", "info"}, rule.Labels["severity"]):
			t.Errorf("%s lacks a summary or a severity", rule.Alert)
		case !strings.Contains(runbook, "| `"+rule.Alert+"` |"):
			t.Errorf("the runbook does not know %s", rule.Alert)
		}
		if rule.For != "" {
			if _, err := time.ParseDuration(rule.For); err != nil {
				t.Errorf("%s: %v", rule.Alert, err)
			}
		}
	}
	for _, name := range regexp.MustCompile("`(Redlockd[A-Za-z]+)`").FindAllStringSubmatch(runbook, -1) {
		if !strings.Contains(file(t, "alerts.yaml"), "alert: "+name[1]+"\n") {
			t.Errorf("the runbook explains %s, which is no alert", name[1])
		}
	}
}

func balanced(expr string) bool {
	for _, pair := range []string{"()", "[]", "{}"} {
		if strings.Count(expr, pair[:1]) != strings.Count(expr, pair[1:]) {
			return false
		}
	}
	return strings.Count(expr, `"`)%2 == 0
}

func TestDashboard_CanBeImported(t *testing.T) {
	var board struct {
		Title  string
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr, RefID string }
		}
	}
	if err := json.Unmarshal([]byte(file(t, "dashboard.json")), &board); err != nil {
		t.Fatal(err)
	}
	ids := make(map[int]bool)
	for _, panel := range board.Panels {
		if ids[panel.ID] || panel.Title == "" || len(panel.Targets) == 0 {
			t.Errorf("panel %d %q", panel.ID, panel.Title)
		}
		ids[panel.ID] = true
		for _, target := range panel.Targets {
			if !balanced(target.Expr) {
				t.Errorf("%s: brackets in %s", panel.Title, target.Expr)
			}
		}
	}
	if len(ids) < 10 {
		t.Errorf("%d panels", len(ids))
	}
}

// sources are the Go files of some packages, tests left out.
func sources(t *testing.T, packages ...string) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range packages {
		paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatal(dir, err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
	}
	return all.String()
}

func TestRunbook_ContainsEveryErrorCode(t *testing.T) {
	runbook, codes := file(t, "RUNBOOK.md"), map[string]bool{}
	for _, match := range regexp.MustCompile(`(?:Error\(|return |")(?:"|-)([A-Z]{3,})[" ]`).FindAllStringSubmatch(sources(t, "commands", "proxy"), -1) {
		codes[match[1]] = true
	}
	for code := range codes {
		if !strings.Contains(runbook, "| `"+code+"` |") && !slices.Contains(notCodes, code) {
			t.Errorf("the runbook does not know %s", code)
		}
	}
	if len(codes) < 12 {
		t.Errorf("only the codes %v were found in the sources", codes)
	}
}

// notCodes look like codes and are other words.
var notCodes = []string{"GET", "POST", "MAX", "WAIT"}

func TestRunbook_ContainsEveryReasonToRefuseAMaster(t *testing.T) {
	runbook, reasons := file(t, "RUNBOOK.md"), 0
	for _, match := range regexp.MustCompile(`[uU]nfitf\("([^"]+)"`).FindAllStringSubmatch(sources(t, "pool", "pool/admission"), -1) {
		constant, _, _ := strings.Cut(match[1], "%")
		constant = strings.TrimRight(constant, " (")
		if reasons++; !strings.Contains(runbook, "`"+shorten(constant)) {
			t.Errorf("the runbook does not know %q", match[1])
		}
	}
	if reasons < 15 {
		t.Errorf("only %d reasons were found in the sources", reasons)
	}
	for i := range pool.VoidReasons {
		if !strings.Contains(runbook, "`"+pool.VoidReason(i)+"`") {
			t.Errorf("the runbook does not know why votes are void: %s", pool.VoidReason(i))
		}
	}
}

// shorten leaves what identifies a reason.
func shorten(text string) string {
	words := strings.Fields(text)
	return strings.Join(words[:min(4, len(words))], " ")
}

func TestRunbook_NamesOptionsThatThereAre(t *testing.T) {
	help := configs.Help()
	for _, option := range regexp.MustCompile("--[a-z][a-z-]+").FindAllString(file(t, "RUNBOOK.md"), -1) {
		if !strings.Contains(help, option) {
			t.Errorf("the runbook names %s", option)
		}
	}
}
