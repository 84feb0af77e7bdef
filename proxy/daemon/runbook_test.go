package daemon

// Tests that alerts, dashboard and runbook name existing metrics and states, and leave none out.

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v2"

	"redlockd/commands/cli"
	"redlockd/pool"
	"redlockd/pool/faulty"
)

// runbookPages begin with the one for incidents, and its first screen with the symptoms.
var runbookPages = []string{"RUNBOOK.md", "LOGS.md", "MEMBERSHIP.md"}

// maxRunbook are the bytes of the page for incidents.
const maxRunbook = 24 << 10

// runbookText has all pages of the runbook.
func runbookText(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, page := range runbookPages {
		all.WriteString(file(t, page) + "\n")
	}
	return all.String()
}

var metricName = regexp.MustCompile(`\bredlockd_[a-z_]+\b`)

func TestMetrics_ThatAlertsDashboardAndRunbookNameAreServed(t *testing.T) {
	served := servedMetrics(t)
	for _, name := range append([]string{"alerts.yaml", "dashboard.json"}, runbookPages...) {
		found := metricName.FindAllString(file(t, name), -1)
		if len(found) == 0 {
			t.Errorf("%s names no metric", name)
		}
		for _, metric := range found {
			isHistogram := strings.HasSuffix(name, ".md") && served[metric+"_bucket"] != nil
			if served[metric] == nil && !isHistogram {
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

// wrong returns what Prometheus would refuse, or what would never fire.
func (all *rules) wrong(served map[string]*metric) (wrong []string) {
	note := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	seen := map[string]bool{}
	for _, group := range all.Groups {
		for _, rule := range group.Rules {
			if seen[rule.Alert] || !alertName.MatchString(rule.Alert) || group.Name == "" {
				note("%s: the name is given twice or is no name", rule.Alert)
			}
			seen[rule.Alert] = true
			if rule.Annotations["summary"] == "" || !slices.Contains([]string{"critical", "warning", "info"}, rule.Labels["severity"]) {
				note("%s lacks a summary or a severity", rule.Alert)
			}
			if rule.For != "" && !alertTime.MatchString(rule.For) {
				note("%s: %s is no time", rule.Alert, rule.For)
			}
			labels, err := labelsOf(rule.Expr, served)
			if err != nil {
				note("%s: %v", rule.Alert, err)
			}
			for _, text := range rule.Annotations {
				for _, part := range legendLabel.FindAllStringSubmatch(text, -1) {
					if label, is := strings.CutPrefix(strings.TrimSpace(part[1]), "$labels."); part[1] != " $value " && (!is || !labels[label]) {
						note("%s shows %s of %v", rule.Alert, part[0], labels)
					}
				}
			}
		}
	}
	return wrong
}

var (
	alertName = regexp.MustCompile(`^Redlockd[A-Za-z]+$`)
	alertTime = regexp.MustCompile(`^[1-9][0-9]*[smh]$`)
)

func TestAlerts_AreCompleteAndInTheRunbook(t *testing.T) {
	text, runbook, served := file(t, "alerts.yaml"), runbookText(t), servedMetrics(t)
	var all rules
	if err := yaml.UnmarshalStrict([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range all.wrong(served) {
		t.Error(wrong)
	}
	for _, group := range all.Groups {
		for _, rule := range group.Rules {
			address, anchor, _ := strings.Cut(rule.Annotations["runbook_url"], "#")
			if page := path.Base(address); !slices.Contains(runbookPages, page) || !slices.Contains(anchors(file(t, page)), anchor) {
				t.Errorf("%s leads to %q, which is no heading of the runbook", rule.Alert, rule.Annotations["runbook_url"])
			}
			if !strings.Contains(runbook, "| `"+rule.Alert+"` |") {
				t.Errorf("the runbook does not know %s", rule.Alert)
			}
		}
	}
	for _, name := range regexp.MustCompile("`(Redlockd[A-Za-z]+)`").FindAllStringSubmatch(runbook, -1) {
		if !strings.Contains(text, "alert: "+name[1]+"\n") {
			t.Errorf("the runbook explains %s, which is no alert", name[1])
		}
	}
	for _, change := range [][2]string{
		{"expr:", "exp:"}, {"for: 1m", "for: 1 m"}, {"severity: critical", "severity: high"}, {"annotations:", "annotation:"},
		{"redlockd_masters_needed", "redlockd_masters_wanted"}, {`state="voting"`, `state="votes"`}, {"$labels.master", "$labels.name"},
		{"alert: RedlockdSlow", "alert: RedlockdDown"}, {"on (instance, master, database) ", ""}, {"[5m]", ""}, {"> 1000", "> > 1000"},
	} {
		var changed rules
		if !strings.Contains(text, change[0]) {
			t.Errorf("alerts.yaml has no %s", change[0])
		}
		if err := yaml.UnmarshalStrict([]byte(strings.Replace(text, change[0], change[1], 1)), &changed); err == nil && len(changed.wrong(served)) == 0 {
			t.Errorf("%s in place of %s is not noticed", change[1], change[0])
		}
	}
}

func TestAlerts_AreReadByPrometheus(t *testing.T) {
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("no promtool on this machine: only the tests' own reader read alerts.yaml")
	}
	if output, err := exec.Command("promtool", "check", "rules", filepath.Join("configs", "alerts.yaml")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
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
	runbook, codes := runbookText(t), map[string]bool{}
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

// The contract lists what the daemon logs.
func TestRunbook_ContainsEveryLineOfTheLog(t *testing.T) {
	golden, err := os.ReadFile("proxy/contract/testdata/logs.golden")
	if err != nil {
		t.Fatal(err)
	}
	runbook, lines := runbookText(t), 0
	for _, match := range regexp.MustCompile(`(?m)^(?:WARN|ERROR) +"([^;"…]+)`).FindAllStringSubmatch(string(golden), -1) {
		if lines++; !strings.Contains(runbook, "`"+shorten(match[1])) {
			t.Errorf("the runbook does not explain %q", match[1])
		}
	}
	if lines < 35 {
		t.Errorf("only %d lines were found in the contract", lines)
	}
}

// notCodes look like codes and are other words.
var notCodes = []string{"GET", "POST", "MAX", "WAIT"}

func TestRunbook_ContainsEveryReasonToRefuseAMaster(t *testing.T) {
	runbook, reasons := runbookText(t), 0
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

// An operator finds the symptom on the first screen, and reads no more than is needed.
func TestRunbook_IsShortAndBeginsWithAnIndex(t *testing.T) {
	runbook := file(t, "RUNBOOK.md")
	index, _, _ := strings.Cut(runbook, "\n## ")
	if lines, links := strings.Count(index, "\n"), strings.Count(index, "]("); lines > 40 || links < 20 {
		t.Errorf("the index has %d lines and %d links, allowed are 40 lines, and 20 links or more", lines, links)
	}
	if len(runbook) > maxRunbook {
		t.Errorf("the page for incidents has %d bytes, allowed are %d: move what no incident needs to another page", len(runbook), maxRunbook)
	}
	if words := len(strings.Fields(runbookText(t))); words > 8000 {
		t.Errorf("the runbook has %d words, allowed are 8000: move what no operator needs to the page of a package", words)
	}
}

func TestRunbook_NamesOptionsThatThereAre(t *testing.T) {
	s := newShell(t)
	// --no-raw is redis-cli's.
	help := strings.Join(append(s.slotsOptions, s.topOptions...), " ") + " --no-raw"
	for _, option := range regexp.MustCompile("--[a-z][a-z-]+").FindAllString(runbookText(t), -1) {
		if !strings.Contains(help, option) {
			t.Errorf("the runbook names %s", option)
		}
	}
}

// anchors are those of a page's headings, as GitHub makes them.
func anchors(page string) (all []string) {
	for _, heading := range regexp.MustCompile(`(?m)^##+ (.+)$`).FindAllStringSubmatch(page, -1) {
		plain := regexp.MustCompile(`[^a-z0-9_ -]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		all = append(all, strings.ReplaceAll(plain, " ", "-"))
	}
	return all
}

// The first page leads to the card of each of these.
func TestRunbook_TheFirstPageLeadsToTheCardOfEachSymptom(t *testing.T) {
	runbook := file(t, "RUNBOOK.md")
	index, _, _ := strings.Cut(runbook, "\n## ")
	for symptom, anchor := range map[string]string{
		"`DNEXTID` gets `LOSTSTATE`": "ids-or-work-that-stopped", "`DWORK` gets": "ids-or-work-that-stopped", "for too long": "a-lock-that-is-not-released", "hot": "a-hot-key", "memory": "memory-of-a-daemon",
		"is `down`": "a-master-that-is-down", "all masters": "all-masters-lost", "full disk": "a-master-that-is-down", "clock": "clocks", "`Not serving`": "losing-a-quorum",
	} {
		row := regexp.MustCompile(`(?m)^\|.*` + regexp.QuoteMeta(symptom) + `.*\(#` + anchor + `\).*$`)
		if !row.MatchString(index) || !slices.Contains(anchors(runbook), anchor) {
			t.Errorf("no row of the first page has %q and leads to #%s", symptom, anchor)
		}
	}
}

// runbookCall is a command of the runbook, and what the lines behind it promise of its output.
type runbookCall struct {
	program  string // redlockd or redis-cli
	args     []string
	promises []string
}

// runbookCalls are the commands of a chapter, in order.
func runbookCalls(t *testing.T, heading string) (calls []runbookCall) {
	t.Helper()
	_, chapter, found := strings.Cut(runbookText(t), "# "+heading+"\n")
	chapter, _, _ = strings.Cut(chapter, "\n##")
	for i, block := range strings.Split(chapter, "```") {
		if i%2 == 0 {
			continue
		}
		for line := range strings.Lines(strings.TrimPrefix(block, "sh\n")) {
			line = strings.TrimSuffix(line, "\n")
			if promise, is := strings.CutPrefix(line, "# "); is {
				last := &calls[len(calls)-1]
				last.promises = append(last.promises, promise)
				continue
			}
			words := strings.Fields(line)
			if len(words) < 2 || words[0] != "redlockd" && words[0] != "redis-cli" {
				t.Fatalf("%q is no command of redlockd or redis-cli", line)
			}
			calls = append(calls, runbookCall{program: words[0], args: words[1:]})
		}
	}
	if !found || len(calls) == 0 {
		t.Fatalf("the runbook has no commands under %q", heading)
	}
	return calls
}

// run runs the command, with other words in the places of its addresses and files.
func (c *runbookCall) run(t *testing.T, here *strings.Replacer) {
	t.Helper()
	args := make([]string, len(c.args))
	for i, arg := range c.args {
		args[i] = here.Replace(arg)
	}
	if c.program == "redis-cli" {
		c.converse(t, args, here)
		return
	}
	want := cli.ExitOK
	if len(c.promises) > 0 && strings.HasPrefix(c.promises[len(c.promises)-1], "redlockd: ") {
		want = cli.ExitRuntime
	}
	code, output := typedInTime(t, args)
	if code != want {
		t.Errorf("%q: code %d, want %d:\n%s", args, code, want, output)
	}
	if missing := c.missing(output, here); missing != "" {
		t.Fatalf("%q does not print %q, or not in this order:\n%s", args, missing, output)
	}
}

// missing is the first promise that the output lacks, or has in another order.
func (c *runbookCall) missing(output string, here *strings.Replacer) string {
	for _, promise := range c.promises {
		text, _, _ := strings.Cut(here.Replace(promise), "…")
		_, after, found := strings.Cut(output, text)
		if !found {
			return text
		}
		output = after
	}
	return ""
}

// converse sends a command to a daemon, one that only reads until it shows what is promised.
func (c *runbookCall) converse(t *testing.T, args []string, here *strings.Replacer) {
	t.Helper()
	missing, output := "", []byte(nil)
	for end := time.Now().Add(testTimeout); ; {
		var err error
		if output, err = exec.CommandContext(t.Context(), "redis-cli", args...).CombinedOutput(); err != nil {
			t.Fatalf("redis-cli %q: %v\n%s", args, err, output)
		}
		if missing = c.missing(string(output), here); missing == "" {
			return
		}
		if !slices.Contains(args, "DINFO") || time.Now().After(end) {
			t.Fatalf("redis-cli %q does not print %q, or not in this order:\n%s", args, missing, output)
		}
	}
}

// From the symptom to the released lock, with a HOLD and a plain SET NX, of which neither has META.
func TestRunbook_FindsTheHolderOfALockAndReleasesIt(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Skip("no redis-cli on this machine")
	}
	servers := faulty.StartGroup(t, 3)
	config := filepath.Join(t.TempDir(), "redlockd.toml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "masters = %q\n", listOf(servers)), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, output := typed(t, nil, "bootstrap", "--config", config); code != cli.ExitOK {
		t.Fatalf("code %d:\n%s", code, output)
	}
	granter, web1 := startProcess(t, "--config", config)
	dial(t, web1).awaitVoters(t, servers) // the other one finds it on the masters
	_, web2 := startProcess(t, "--config", config)
	dial(t, web2).awaitVoters(t, servers)
	holder, job := dial(t, web1), dial(t, web1)
	if reply := holder.ask(t, "CLIENT SETNAME billing-7"); reply != "+OK" {
		t.Fatal(reply)
	}
	if reply := holder.ask(t, "DLOCK invoices 60000 HOLD"); reply != "*3" {
		t.Fatal(reply)
	}
	if reply := job.ask(t, "SET nightly worker-3 NX PX 60000"); reply != "+OK" {
		t.Fatal(reply)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	port := func(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }
	calls := runbookCalls(t, "A lock that is not released")
	if len(calls) < 9 {
		t.Fatalf("only %d commands", len(calls))
	}
	for _, call := range calls {
		if at := slices.Index(call.args, "7379"); at > 0 {
			call.args[at] = map[string]string{"10.0.0.21": port(web1), "10.0.0.22": port(web2)}[call.args[at-2]]
		}
		call.run(t, strings.NewReplacer("/etc/redlockd/redlockd.toml", config, "10.0.0.21", "127.0.0.1", "10.0.0.22", "127.0.0.1",
			"web-1/812", fmt.Sprintf("%s/%d", host, granter.Process.Pid), "at 10.0.0.9", "at 127.0.0.1",
			"10.0.0.7:51122", holder.LocalAddr().String(), "10.0.0.7:51130", job.LocalAddr().String()))
	}
}

// runAt runs the commands of a chapter at a daemon in the place of that in the runbook.
func runAt(t *testing.T, address string, here *strings.Replacer, heading string) {
	t.Helper()
	calls := runbookCalls(t, heading)
	for _, call := range calls {
		if at := slices.Index(call.args, "7379"); at > 0 {
			call.args[at] = address[strings.LastIndexByte(address, ':')+1:]
		}
		call.run(t, here)
	}
}

// Two of three masters have lost their memory.
func TestRunbook_StartsIDsAndWorkAgain(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Skip("no redis-cli on this machine")
	}
	servers := faulty.StartGroup(t, 4, "--appendonly", "yes", "--appendfsync", "always")
	config := filepath.Join(t.TempDir(), "redlockd.toml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "masters = %q\nmax-ttl = \"1s\"\nmax-keep = \"1s\"\n", listOf(servers[:3])), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, output := typed(t, nil, "bootstrap", "--config", config); code != cli.ExitOK {
		t.Fatalf("code %d:\n%s", code, output)
	}
	address := serveHere(t, nil, "--config", config)
	c := dial(t, address)
	c.awaitVoters(t, servers[:3])
	if got := c.ask(t, "DNEXTID invoices COUNT 41"); strings.HasPrefix(got, "-") {
		t.Fatal(got)
	}
	for i, s := range servers[1:3] {
		s.FlushAll()
		c.awaitMaster(t, i+1, "quarantined")
	}
	c.awaitVoters(t, servers[:3])
	runAt(t, address, strings.NewReplacer("/etc/redlockd/redlockd.toml", config, "10.0.0.21", "127.0.0.1", "10.0.0.4:6379", servers[3].Addr()), "Ids or work that stopped")
}

// An operator's commands, on real masters beside a daemon that follows.
func TestRunbook_CommandsThatChangeTheMastersDoWhatItTells(t *testing.T) {
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Skip("no redis-cli on this machine")
	}
	servers := faulty.StartGroup(t, 6, "--appendonly", "yes", "--appendfsync", "always")
	config := filepath.Join(t.TempDir(), "redlockd.toml")
	words := []string{"/etc/redlockd/redlockd.toml", config, "10.0.0.21", "127.0.0.1", "web-1/812 at 10.0.0.9", pool.DaemonName() + " at 127.0.0.1"}
	for i, s := range servers {
		words = append(words, fmt.Sprintf("10.0.0.%d:6379", i+1), s.Addr())
	}
	here := strings.NewReplacer(words...)
	settings := func(masters string) {
		t.Helper()
		text := fmt.Sprintf("masters = %q\nmax-ttl = \"100ms\"\nmax-keep = \"1s\"\n", masters)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	settings(listOf(servers[:3]))
	if code, output := typed(t, nil, "bootstrap", "--config", config); code != cli.ExitOK {
		t.Fatalf("code %d:\n%s", code, output)
	}
	address := serveHere(t, nil, "--config", config)
	c := dial(t, address)
	c.awaitVoters(t, servers[:3])
	runAt(t, address, here, "Changing the masters")
	list := here.Replace("a=10.0.0.1:6379,b=10.0.0.2:6379,d=10.0.0.4:6379")
	eventually(t, "the daemon follows", func() bool {
		info := c.info(t, "masters")
		return info["masters"] == "3" && info["masters_voting"] == "3" && info["configuration_epoch"] == "5"
	}, func() string { return fmt.Sprint(c.info(t, "masters")) })
	for i, s := range []*faulty.Server{servers[0], servers[1], servers[3]} {
		if line := c.info(t, "masters")[fmt.Sprint("master", i)]; !strings.Contains(line, "address="+s.Addr()+",") {
			t.Errorf("master %d is %s", i, line)
		}
	}
	settings(list)
	for _, call := range runbookCalls(t, "Several key prefixes") {
		call.run(t, here)
	}
	eventually(t, "the daemon follows again", func() bool {
		info := c.info(t, "masters")
		return info["masters_voting"] == "3" && info["configuration_epoch"] == "6"
	}, func() string { return fmt.Sprint(c.info(t, "masters")) })
	jobs := dial(t, serveHere(t, nil, "--config", config, "--key-prefix", "jobs:", "--key-prefixes", ",jobs:"))
	eventually(t, "a daemon of the other prefix is admitted", func() bool {
		info := jobs.info(t, "masters")
		return info["masters_voting"] == "3" && info["configuration_epoch"] == "6"
	}, func() string { return fmt.Sprint(jobs.info(t, "masters")) })
	for _, call := range runbookCalls(t, "Changing a limit, the group's name or the version") {
		call.run(t, here)
	}
}
