package daemon

// corefiles_test.go: which files run for a plain DLOCK, measured with a daemon that is built for coverage.

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"redlockd/pool/faulty"
)

// mostLockFiles is how many files run for a DLOCK beyond start and PING: 28 today.
const mostLockFiles = 40

func TestCoverage_APlainLockRunsFewFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the daemon for coverage: make test-long")
	}
	program := filepath.Join(t.TempDir(), "redlockd")
	if text, err := exec.Command("go", "build", "-cover", "-coverpkg=./...", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	before := coveredFiles(t, program, "PING")
	var more []string
	for _, file := range coveredFiles(t, program, "PING", "DLOCK invoices 30000") {
		if !slices.Contains(before, file) {
			more = append(more, file)
		}
	}
	t.Logf("%d files run for start and PING, %d more for DLOCK: %s", len(before), len(more), strings.Join(more, " "))
	if len(before) < 20 || len(more) < 5 || len(more) > mostLockFiles {
		t.Errorf("%d files more, 5 to %d are allowed: an option runs where it is not used", len(more), mostLockFiles)
	}
}

// coveredFiles are the files of which something runs in a daemon that serves these commands.
func coveredFiles(t *testing.T, program string, commands ...string) (files []string) {
	t.Helper()
	servers, counts := faulty.StartGroup(t, 3), t.TempDir()
	var masters []string
	for _, s := range servers {
		masters = append(masters, s.Addr())
	}
	options := []string{"--masters", strings.Join(masters, ",")}
	environment := append(os.Environ(), unhurried, "REDLOCKD_DRAIN_GRACE=0", "GOCOVERDIR="+counts)
	bootstrap := exec.Command(program, append([]string{"bootstrap"}, options...)...)
	bootstrap.Env = append(slices.Clone(environment), "GOCOVERDIR="+t.TempDir())
	if text, err := bootstrap.CombinedOutput(); err != nil {
		t.Fatalf("bootstrap: %v\n%s", err, text)
	}
	log := &faulty.Log{}
	process := exec.Command(program, append([]string{"--listen", "127.0.0.1:0"}, options...)...)
	process.Env, process.Stderr = environment, log
	stdout, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Process.Kill() })
	c := dial(t, readAddress(t, stdout))
	eventually(t, "all masters vote", func() bool { return strings.Count(log.String(), "master votes") == len(servers) }, log.String)
	for _, command := range commands {
		if reply := c.ask(t, "%s", command); reply == "" || reply[0] == '-' {
			t.Fatalf("%s: %s", command, reply)
		}
	}
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	text, err := exec.Command("go", "tool", "covdata", "textfmt", "-i="+counts, "-o=/dev/stdout").Output()
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(strings.NewReader(string(text))); lines.Scan(); {
		file, rest, _ := strings.Cut(lines.Text(), ":")
		if name, own := strings.CutPrefix(file, module+"/"); own && !strings.HasSuffix(rest, " 0") {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}
