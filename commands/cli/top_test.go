// Tests of what top reads and draws.

package cli

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/commands/diagnosis"
	"redlockd/proxy/resp"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// reply is a list in RESP2; of a map names and values in turn.
func reply(items ...any) []any { return items }

func masterReply(name, state, detail string, since, left int64) any {
	return reply("name", name, "address", "10.0.0.1:6379", "state", state, "detail", detail, "since_ms", since, "left_ms", left, "rtt_p50_us", int64(180), "rtt_p99_us", int64(2345), "rtt_counts", "180:98 2345:2",
		"clock_us", int64(-1234), "queued", int64(0), "pending_releases", int64(3), "granted", int64(123456), "refused", int64(78), "uncounted", int64(9))
}

func waiterReply(waited int64, name string, keys ...any) any {
	return reply("keys", reply(keys...), "addr", "10.0.0.9:4711", "name", name, "waited-ms", waited, "left-ms", int64(1000))
}

// lockReply is one of DINFO; without a note the holder has a token alone.
func lockReply(held time.Duration, ttl int64, meta any) any {
	holder := reply("token", "01234567", "ttl", ttl, "meta", meta, "daemon", "d1", "client", "10.0.0.9:4711", "name", "worker-7")
	return reply("state", "held", "mode", "exclusive", "limit", nil, "count", int64(1), "holders", reply(holder), "fence", noon.Add(-held).UnixMicro(), "waiters", int64(2), "queue", int64(0))
}

// scene is a daemon with waits and so many locks; two of its five masters do not vote.
func scene(locks int) snapshot {
	m := &monitor{before: fields{}}
	info := infoFields("# Server\r\nserver_time_usec:2000000\r\nlocks_acquired:1234\r\nlocks_refused:7\r\nlocks_no_quorum:1\r\nlocks_expired:2\r\nlocks_released:900\r\nlocks_held:40\r\nwaiters:3\r\nholds:2\r\nconnected_clients:12\r\n")
	masters := reply(masterReply("a", "voting", "", 3_600_000, 0), masterReply("b", "down", "connection refused; 12s ago", 12_000, 0),
		masterReply("third-master.example.org", "quarantined", "its memory is \x1b[2Jnew; votes in 50.2s", 1000, 50_200),
		masterReply("d", "voting", "", 3_600_000, 0), masterReply("e", "voting", "", 3_600_000, 0))
	waits := reply(waiterReply(95_000, "web", "invoices", "reports:2026"), waiterReply(1_500, "", "invoices"))
	views := map[string]any{"free": reply("state", "free")}
	names := []string{"orders:shipping:europe:central:warehouse-17:shelf-204", "größe 日本語のとても長いキーです日本語のとても長いキーです", "a\x1b[2Jb", "invoices"}
	for i := range locks {
		name := fmt.Sprintf("job:%04d", i)
		if i < len(names) {
			name = names[i]
		}
		views[name] = lockReply(time.Duration(locks-i)*time.Minute, int64(100*i), "nightly \x1b]0;run")
	}
	views["plain"] = reply("state", "undecided", "mode", nil, "limit", nil, "count", int64(0), "holders", reply(), "fence", nil, "waiters", int64(0), "queue", int64(0))
	m.walk(reply("0", reply()))
	note := ""
	if locks > 1000 {
		m.walked = false
		_, note = m.walk(reply("77", reply()))
	}
	s := snapshot{title: "redlockd top: 127.0.0.1:7379, database 0, version 1.2.3, up 3h0m0s, 12:00:00"}
	waiting, waited := waitsPanel(waits)
	verdict, panel := m.mastersPanel(masters, info, noon)
	stuck, requests := diagnosis.StuckKeys(waiting, everyKey)
	verdict.WarnStuck(waitedFor(stuck, views), requests, waiting[0].Since, noon)
	verdict.Finish(5, "")
	m.before = infoFields("server_time_usec:1000000")
	s.verdict, s.figures = verdict, m.figures(info, "")
	s.panels = append(s.panels, panel, waited, m.locksPanel(views, note, noon))
	return s
}

func TestRender_DrawsTheScreensOfTheGoldenFile(t *testing.T) {
	var got strings.Builder
	for _, size := range [][2]int{{80, 24}, {60, 20}, {40, 20}, {160, 50}} {
		for _, locks := range []int{0, 10, 5000} {
			s := scene(locks)
			s.keys = true
			fmt.Fprintf(&got, "=== %d x %d, %d locks\n%s", size[0], size[1], locks, render(s, size[0], size[1]))
		}
	}
	const file = "testdata/top.golden"
	if os.Getenv("REDLOCKD_UPDATE") == "1" {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the screens are\n%s\nREDLOCKD_UPDATE=1 writes %s", got.String(), file)
	}
}

func TestRender_FitsEveryTerminal(t *testing.T) {
	scenes := []snapshot{{}, scene(0), scene(10), scene(60)}
	scenes[2].keys, scenes[3].keys = true, true
	scenes[1].lost = "dial tcp 127.0.0.1:7379: connect: connection refused; trying again since 11:59:00"
	scenes[2].panels[0].note = "NOPERM User 'web' has no permissions to run the 'dmasters' command"
	for i, s := range scenes {
		for width := 1; width <= 200; width += 1 + width/8 {
			for height := 1; height <= 60; height += 1 + height/5 {
				lines := strings.Split(strings.TrimSuffix(render(s, width, height), "\n"), "\n")
				if len(lines) > height {
					t.Fatalf("scene %d has %d lines of %d", i, len(lines), height)
				}
				for _, line := range lines {
					if textWidth(line) > width || strings.ContainsAny(line, "\x1b\t") {
						t.Fatalf("scene %d: %q has %d columns of %d", i, line, textWidth(line), width)
					}
				}
			}
		}
	}
}

// A small terminal has a row of each panel, too: whatever is wrong with the masters, somebody looks for a lock.
func TestRender_ShowsLocksOnASmallTerminal(t *testing.T) {
	for _, size := range [][2]int{{60, 20}, {80, 24}} {
		s := scene(10)
		s.keys = true
		text := render(s, size[0], size[1])
		for _, says := range []string{"\nMASTER ", "\nWAITED-FOR ", "\nLOCK ", "\norders:", "\nq ends it"} {
			if !strings.Contains(text, says) {
				t.Errorf("%v lacks %q:\n%s", size, says, text)
			}
		}
	}
}

// The round trips are those since the last refresh.
func TestMonitor_ShowsRoundTripsOfTheLastInterval(t *testing.T) {
	m := &monitor{before: fields{}}
	row := func(counts string) []string {
		_, p := m.mastersPanel(reply(reply("name", "a", "state", "voting", "rtt_counts", counts)), fields{}, noon)
		return p.rows[0][3:5]
	}
	for _, c := range []struct{ counts, p50, p99 string }{
		{"100:99 5000:1", "100µs", "100µs"}, {"100:99 200:3 5000:3", "200µs", "5ms"}, {"100:99 200:3 5000:3", "–", "–"}, {"100:1", "–", "–"}, {"100:5", "100µs", "100µs"},
	} {
		if got := row(c.counts); got[0] != c.p50 || got[1] != c.p99 {
			t.Errorf("%s: %q, want %s and %s", c.counts, got, c.p50, c.p99)
		}
	}
}

func TestRender_KeepsEverythingWithoutALimit(t *testing.T) {
	text := strings.Join(strings.Fields(render(scene(60), 0, 0)), " ")
	for _, says := range []string{
		"Needs attention: 2 of 5 masters cannot vote: b has been down for 12s (connection refused)", "orders:shipping:europe:central:warehouse-17:shelf-204", "third-master.example.org",
		"job:0049 11m0s", "These 50 locks are held longest; there are more.", "granted 1234/s", "refused 7.0/s", "undecided 3.0/s", `"a\x1b[2Jb"`,
	} {
		if !strings.Contains(text, says) {
			t.Errorf("%q is missing:\n%s", says, text)
		}
	}
}

// Colours only repeat what the words mean.
func TestRender_ColoursNothingButWords(t *testing.T) {
	s := scene(10)
	plain := render(s, 80, 24)
	s.colours = true
	coloured := render(s, 80, 24)
	if coloured == plain || regexp.MustCompile(`\x1b\[[0-9]*m`).ReplaceAllString(coloured, "") != plain {
		t.Errorf("%q\n%q", coloured, plain)
	}
}

func TestShorten_TakesOutTheMiddle(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"invoices", 8, "invoices"}, {"invoices", 7, "invo…es"}, {"invoices", 2, "i…"}, {"invoices", 1, "…"},
		{"日本語のキー", 12, "日本語のキー"}, {"日本語のキー", 11, "日本語…ー"}, {"e\u0301e\u0301", 2, "e\u0301e\u0301"},
	} {
		if got := shorten(c.text, c.width); got != c.want || textWidth(got) > c.width {
			t.Errorf("%q in %d: %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

// wire is a reply as the daemon sends it.
func wire(v any) string {
	switch v := v.(type) {
	case nil:
		return "$-1\r\n"
	case int64:
		return fmt.Sprintf(":%d\r\n", v)
	case string:
		return fmt.Sprintf("$%d\r\n%s\r\n", len(v), v)
	case resp.Error:
		return "-" + string(v) + "\r\n"
	}
	items := v.([]any)
	text := fmt.Sprintf("*%d\r\n", len(items))
	for _, item := range items {
		text += wire(item)
	}
	return text
}

func infoReply(runID string, at, acquired int64) string {
	return wire(fmt.Sprintf("# Server\r\nredlockd_version:1.2.3\r\nrun_id:%s\r\nserver_time_usec:%d\r\nuptime_in_seconds:5\r\nlocks_acquired:%d\r\nlocks_held:1\r\nwaiters:0\r\nholds:0\r\nconnected_clients:1\r\n", runID, at, acquired))
}

// answering is a daemon with one lock, on one master.
func answering(t *testing.T, infos ...string) *script {
	t.Helper()
	at := noon.UnixMicro()
	if len(infos) == 0 {
		infos = []string{infoReply("a", at, 5), infoReply("a", at+2_000_000, 105)}
	}
	master := wire(reply(masterReply("m1", "voting", "", 3_600_000, 0)))
	return startScript(t, map[string][]string{
		"INFO": infos, "DMASTERS": {wire(reply(reply("name", "m1", "state", "voting"))), master}, "DWAITERS": {wire(reply())},
		"DLOCKS": {wire(reply("0", reply("invoices", "exclusive", int64(1), int64(1000))))}, "DINFO": {wire(lockReply(time.Minute, 1000, nil))},
	})
}

func TestTopOnce_PrintsASnapshotAndOnlyReads(t *testing.T) {
	t.Parallel()
	s := answering(t)
	r := record("LOCK_USER=anna", "LOCK_PASSWORD=secret")
	if err := r.Run(t.Context(), []string{"top", "--once", "--connect", s.Addr().String(), "--db", "3"}); err != nil {
		t.Fatal(err)
	}
	for _, says := range []string{"database 3, version 1.2.3, up 5s", "All well: All 1 masters vote.", "granted 50/s", "held 1", "m1", "voting", "1h0m0s", "180µs", "2.3ms", "-1.2ms", "invoices", "1m2s", "worker-7 10.0.0.9:4711"} {
		if !strings.Contains(r.out.String(), says) {
			t.Errorf("%q is missing:\n%s", says, r.out.String())
		}
	}
	want := []string{"AUTH anna secret", "SELECT 3"}
	for range 2 {
		want = append(want, "INFO", "DMASTERS", "DWAITERS", "DLOCKS 0 COUNT 100", "DINFO invoices")
	}
	if s.mu.Lock(); !slices.Equal(s.received, want) {
		t.Errorf("received %q, want %q", s.received, want)
	}
	s.mu.Unlock()
}

func TestMonitor_ShowsTheErrorOfACommandInItsPanel(t *testing.T) {
	for word, says := range map[string]string{
		"INFO": "INFO: NOPERM no", "DMASTERS": "\nNOPERM no\n", "DWAITERS": "\nNOPERM no\n", "DLOCKS": "DLOCKS: NOPERM no", "DINFO": "DINFO: NOPERM no",
	} {
		s := answering(t)
		s.answers[word] = []string{"-NOPERM no\r\n"}
		shown, err := newMonitor(t, s).refresh(t.Context())
		text := render(shown, 0, 0)
		if err != nil || !strings.Contains(text, says) || strings.Contains(text, "voting") != (word != "DMASTERS") || strings.Contains(text, "1m0s") != (word != "DLOCKS" && word != "DINFO" && word != "INFO") {
			t.Errorf("%s: %v\n%s", word, err, text)
		}
	}
}

func TestMonitor_NamesWhatTheMastersDoNotShow(t *testing.T) {
	info := infoReply("a", noon.UnixMicro(), 5)
	info = strings.TrimSuffix(info, "\r\n")[strings.Index(info, "\r\n")+2:] + "daemons_stale:2\r\nunfinished_slots:8192\r\n"
	shown, err := newMonitor(t, answering(t, wire(info))).refresh(t.Context())
	if text := render(shown, 0, 0); err != nil || !strings.Contains(text, "Needs attention: Daemons that grant nothing, ") || !strings.Contains(text, "\nNothing is granted in 8192 slots: ") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestTop_RefusesWhatCannotWork(t *testing.T) {
	for line, says := range map[string]string{
		"now": "write top [OPTION…]", "--db -1": "--db is -1", "--connect=": "--connect names no daemon", "--ca /does/not/exist": "--ca", "--ttl 5s": "--ttl",
		"": "the output is no terminal that can be redrawn; use redlockd top --once",
	} {
		r := record()
		if err := r.Run(t.Context(), append([]string{"top"}, strings.Fields(line)...)); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", line, err, says)
		}
	}
	s := answering(t, "-WRONGPASS no\r\n")
	s.answers["AUTH"] = []string{"-WRONGPASS wrong\r\n"}
	r := record("LOCK_PASSWORD=secret")
	if err := r.Run(t.Context(), []string{"top", "--once", "--connect", s.Addr().String()}); Report(t.Output(), err) != ExitRuntime || !strings.Contains(err.Error(), "top: WRONGPASS wrong") {
		t.Error(err)
	}
}

func newMonitor(t *testing.T, s *script) *monitor {
	d := &daemons{addresses: []string{s.Addr().String()}}
	t.Cleanup(d.close)
	return &monitor{daemons: d}
}

// A walk of three steps; what is held longest stays in the list, whichever step found it.
func TestMonitor_WalksOverAllLocks(t *testing.T) {
	s := answering(t)
	step := func(cursor string, keys ...string) string {
		var items []any
		for _, key := range keys {
			items = append(items, key, "exclusive", int64(1), int64(1000))
		}
		return wire(reply(cursor, items))
	}
	s.answers["DLOCKS"] = []string{step("11", "a", "b"), step("12", "c"), step("0", "d"), step("11", "a")}
	m := newMonitor(t, s)
	for round, want := range []struct {
		keys, note string
	}{{"a b", "This list is partial"}, {"a b c", "This list is partial"}, {"a b c d", ""}, {"a b c d", ""}} {
		shown, err := m.refresh(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p := shown.panels[2]
		keys := []string{}
		for _, row := range p.rows {
			keys = append(keys, row[0])
		}
		if strings.Join(keys, " ") != want.keys || !strings.HasPrefix(p.note, want.note) || (want.note == "") != (p.note == "") {
			t.Errorf("round %d: %q, %q, want %+v", round, keys, p.note, want)
		}
	}
	if s.count("DLOCKS 0") != 2 || s.count("DLOCKS 11") != 1 || s.count("DLOCKS 12") != 1 {
		t.Errorf("received %q", s.received)
	}
}

func TestMonitor_InspectsManyLocksInSeveralWrites(t *testing.T) {
	s := answering(t)
	var items []any
	for i := range 2*maxInspected + 10 {
		items = append(items, fmt.Sprint("key", i), "exclusive", int64(1), int64(1000))
	}
	s.answers["DLOCKS"] = []string{wire(reply("5", items)), wire(reply("0", reply()))}
	m := newMonitor(t, s)
	for range 2 {
		if _, err := m.refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.count("DINFO"); n != 2*maxInspected+10+maxLeaders || len(m.leaders) != maxLeaders {
		t.Errorf("%d keys inspected, %d kept", n, len(m.leaders))
	}
}

// The counters of another process are smaller, and its masters have another history.
func TestMonitor_BeginsAnewWithAnotherDaemon(t *testing.T) {
	at := noon.UnixMicro()
	s := answering(t, infoReply("a", at, 500), infoReply("a", at+1_000_000, 510), infoReply("b", at+2_000_000, 3), infoReply("b", at+3_000_000, 4))
	m := newMonitor(t, s)
	for _, want := range []string{"granted –", "granted 10/s", "granted –", "granted 1.0/s"} {
		if shown, err := m.refresh(t.Context()); err != nil || shown.figures[0] != want {
			t.Errorf("%v, %v, want %s", shown.figures, err, want)
		}
	}
}

func TestMonitor_NamesTheKeyThatIsWaitedForAndTheWarning(t *testing.T) {
	s := answering(t, strings.Replace(infoReply("a", noon.UnixMicro(), 5), "redlockd_version", "redlockd_warning:bootstrap\r\nredlockd_version", 1))
	s.answers["INFO"] = []string{wire("redlockd_warning:bootstrap stays in force\r\nserver_time_usec:" + fmt.Sprint(noon.UnixMicro()))}
	s.answers["DWAITERS"] = []string{wire(reply(waiterReply(95_000, "web", "invoices"), waiterReply(1_500, "", "invoices")))}
	shown, err := newMonitor(t, s).refresh(t.Context())
	want := []string{"Key invoices has been held 1m0s by worker-7 10.0.0.9:4711 with 2 waiting, the first for 1m35s.", "bootstrap stays in force"}
	if err != nil || !slices.Equal(shown.verdict.Lines, want) {
		t.Errorf("%q, %v, want %q", shown.verdict.Lines, err, want)
	}
	if rows := shown.panels[1].rows; len(rows) != 1 || strings.Join(rows[0], "|") != "invoices|2|1m35s|web 10.0.0.9:4711" {
		t.Errorf("the waits are %q", rows)
	}
}
