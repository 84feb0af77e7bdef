package daemon

// Tests of what an operator reads while --bootstrap is set.

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlockd/configs"
	"redlockd/pool/faulty"
)

func TestWarn_RepeatsWhereBootstrapComesFromEveryMinute(t *testing.T) {
	path := filepath.Join(t.TempDir(), "redlockd.toml")
	if err := os.WriteFile(path, []byte("bootstrap = true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for source, from := range map[string]struct{ args, environ []string }{
		"--bootstrap":        {args: []string{"--bootstrap"}},
		"REDLOCKD_BOOTSTRAP": {environ: []string{"REDLOCKD_BOOTSTRAP=true"}},
		path:                 {args: []string{"--config", path}},
		"":                   {},
	} {
		config, err := configs.Load(from.args, from.environ)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			var log faulty.Log
			lines := func() int {
				synctest.Wait()
				return strings.Count(log.String(), "bootstrap = true (from "+source+") stays in force")
			}
			stop := warn(config, slog.New(slog.NewTextHandler(&log, nil)))
			for minute := range 5 {
				want := minute + 1
				if source == "" {
					want = 0
				}
				if n := lines(); n != want {
					t.Errorf("from %q: %d lines after %d minutes, want %d", source, n, minute, want)
				}
				time.Sleep(time.Minute)
			}
			before := lines()
			stop()
			time.Sleep(time.Hour)
			if lines() != before {
				t.Errorf("from %q: lines after the end", source)
			}
		})
	}
}

func TestAdmin_ShowsThatBootstrapIsSet(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	o := operate(t, "--masters", listOf(servers), "--bootstrap")
	const note = "; note: bootstrap = true stays in force, take it out (the log names its source)\n"
	if body := o.await(t, "/readyz", http.StatusOK, "3 of 3"); body != "3 of 3 masters may vote, 2 needed"+note {
		t.Errorf("/readyz: %q", body)
	}
	for _, text := range []string{`"level":"warn"`, "All 3 masters vote.", "bootstrap = true (from --bootstrap) stays in force"} {
		o.pageShows(t, "/state", ":", text)
	}
	o.stop(t)
}

func TestServe_WarnsOfBootstrapAtItsStart(t *testing.T) {
	code, output := typed(t, nil, "--bootstrap", "--listen", "127.0.0.1:0", "--admin-listen", "192.0.2.1:0") // no address of this machine
	if code == 0 || !strings.Contains(output, "bootstrap = true (from --bootstrap) stays in force") {
		t.Errorf("code %d:\n%s", code, output)
	}
}
