// The environment of the tests of this module: one binary of the daemon that is built
// once, processes that end with the test, and a check for leaked goroutines.

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"redlockd/pool/faulty"
)

// binary is the daemon; TestMain builds it before the first test.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "redlockd-bench-test")
	if err == nil {
		binary, err = buildDaemon(context.Background(), dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// What runs already belongs to packages that start goroutines when loaded.
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent(), goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// launch starts the daemon with options and waits until it grants locks.
func launch(t *testing.T, options ...string) *daemon {
	t.Helper()
	d, err := startDaemon(binary, filepath.Join(t.TempDir(), "redlockd"), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.process.terminate()
		if t.Failed() {
			t.Logf("the daemon on %s printed:\n%s", d.address, d.process.text())
		}
	})
	if err := d.ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

// realMasters starts n redis-servers and returns them with the options that
// name them.
func realMasters(t *testing.T, n int) (servers []*faulty.Server, options []string) {
	t.Helper()
	servers = faulty.StartGroup(t, n)
	return servers, []string{"--masters", strings.Join(addresses(servers), ","), "--bootstrap"}
}

func addresses(servers []*faulty.Server) []string {
	var all []string
	for _, s := range servers {
		all = append(all, s.Addr())
	}
	return all
}

// unhurried has masters that a busy machine delays count as present.
var unhurried = []string{"--master-timeout", "5s"}

// onBothKinds runs a test before embedded masters and before real ones.
func onBothKinds(t *testing.T, test func(t *testing.T, d *daemon)) {
	t.Run("embedded masters", func(t *testing.T) { test(t, launch(t, append([]string{"--embedded", "5"}, unhurried...)...)) })
	t.Run("real masters", func(t *testing.T) {
		_, options := realMasters(t, 5)
		test(t, launch(t, append(options, unhurried...)...))
	})
}

// needCLI ends the test where redis-cli is missing: a smoke test that does not
// run must not look like one that passed.
func needCLI(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Fatalf("this test types into redis-cli: %v; install it (apt-get install redis-tools, dnf install redis, brew install redis)", err)
	}
}
