package contract

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlockd/proxy/daemon"
)

// timeout bounds waits for what must happen; no test concludes anything from it.
const timeout = 2 * time.Minute

// TestMain lets the test binary stand in for the daemon.
func TestMain(m *testing.M) {
	switch os.Getenv("RUN_MAIN") {
	case "1":
		os.Exit(daemon.Main(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
	case "usage":
		answerUsage(os.Stdin, os.Stdout)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// environ starts the test binary as a daemon. Masters may answer late: a busy machine
// delays them.
func environ(mode string) []string {
	return []string{"RUN_MAIN=" + mode, "REDLOCKD_MASTER_TIMEOUT=5s", "REDLOCKD_DRAIN_GRACE=0", "GORACE=atexit_sleep_ms=0", "PATH=" + os.Getenv("PATH")}
}

// process is one running daemon.
type process struct {
	command *exec.Cmd
	address string // of the port
	admin   string // URL of the admin endpoint
}

// start runs a daemon until the test ends.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	limit, cancel := context.WithTimeout(context.Background(), 10*timeout) // one that does not end is killed
	p := &process{command: exec.CommandContext(limit, os.Args[0], append([]string{"--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}, args...)...)}
	p.command.Env = environ("1")
	var log strings.Builder
	p.command.Stderr = &log
	out, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	banner := bufio.NewScanner(out)
	for p.admin == "" && banner.Scan() {
		if address, ok := strings.CutPrefix(banner.Text(), "redlockd listens on "); ok {
			p.address = address
		}
		if url, ok := strings.CutPrefix(banner.Text(), "metrics and health on "); ok {
			p.admin = url
		}
	}
	t.Cleanup(func() {
		_ = p.command.Process.Kill() // an error if the process has ended
		_, _ = io.Copy(io.Discard, out)
		_ = p.command.Wait()
		cancel()
		if t.Failed() {
			t.Logf("log of the daemon:\n%s", log.String())
		}
	})
	if p.admin == "" {
		t.Fatalf("no banner: %v", banner.Err())
	}
	return p
}

// awaitMasters returns when all masters vote.
func (p *process) awaitMasters(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(timeout); time.Now().Before(end); time.Sleep(time.Millisecond) {
		response, err := http.Get(p.admin + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if words := strings.Fields(string(text)); len(words) > 2 && words[0] == words[2] {
			return
		}
	}
	t.Fatal("masters do not vote")
}

// stop makes the daemon drain.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// usage is one call of the program that ends by itself.
type usage struct {
	Args           []string
	Code           int
	Stdout, Stderr string
}

// answerUsage executes calls that it reads, all in one process.
func answerUsage(in io.Reader, out io.Writer) {
	var calls []usage
	if err := json.NewDecoder(in).Decode(&calls); err != nil {
		panic(err)
	}
	for i := range calls {
		var stdout, stderr strings.Builder
		calls[i].Code = daemon.Main(calls[i].Args, nil, strings.NewReader(""), &stdout, &stderr)
		calls[i].Stdout, calls[i].Stderr = stdout.String(), stderr.String()
	}
	_ = json.NewEncoder(out).Encode(calls)
}
