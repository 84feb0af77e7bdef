package chaos

// main_test.go: the daemon is built once for all tests, and nothing of them
// outlives them.

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if words := os.Getenv(holderWords); words != "" {
		beHolder(strings.Fields(words))
		return
	}
	dir, err := os.MkdirTemp("", "redlockd-chaos-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	buildDaemon = sync.OnceValues(func() (string, error) { return build(dir) })
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		failed.print(os.Stderr)
		os.Exit(code)
	}))
}

// failed are the runs that did, repeated when all tests are over.
var failed epilogue

// buildDaemon returns the path of the daemon's binary.
var buildDaemon func() (string, error)

func build(dir string) (string, error) {
	if there := os.Getenv("CHAOS_BINARY"); there != "" {
		return there, nil
	}
	binary := filepath.Join(dir, "redlockd")
	words := []string{"build", "-o", binary}
	if os.Getenv("CHAOS_RACE") == "1" {
		words = append(words, "-race")
	}
	output, err := exec.Command("go", append(words, "redlockd")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building redlockd: %w\n%s", err, output)
	}
	return binary, nil
}

// environment of the daemons: ours without what would configure them.
func environment(extra ...string) []string {
	var clean []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "REDLOCKD_") {
			clean = append(clean, entry)
		}
	}
	return append(clean, extra...)
}

// patience bounds waits for what must happen; nothing is concluded from its length.
var waitTimeout = chosenTimeout()

// chosenPatience is short where something is expected never to happen.
func chosenTimeout() time.Duration {
	if seconds, err := strconv.Atoi(os.Getenv(searchTimeout)); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return 60 * time.Second
}

// look is the time between two looks at it.
const look = 5 * time.Millisecond

// eventually waits until something is true; false if it did not become so.
func eventually(happened func() bool) bool {
	for end := time.Now().Add(waitTimeout); !happened(); time.Sleep(look) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
