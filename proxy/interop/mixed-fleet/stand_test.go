package fleet

// stand_test.go: masters that keep their memory over a restart, and daemons.

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"redlockd/pool/faulty"
)

// start builds and starts everything. guarded daemons quarantine a master that may have lost
// its memory.
func start(t *testing.T, guarded bool) *fleet {
	t.Helper()
	f := &fleet{t: t, python: os.Getenv("FLEET_PYTHON"), seed: rand.Uint64()}
	if f.python == "" {
		t.Skip("FLEET_PYTHON names no Python with redis-py: make interop")
	}
	if text := os.Getenv("FLEET_SEED"); text != "" {
		var err error
		if f.seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("FLEET_SEED: %q, want a number below 2^64", text)
		}
	}
	t.Logf("FLEET_SEED=%d", f.seed)
	redis.SetLogger(silent{})
	binary := filepath.Join(t.TempDir(), "redlockd")
	run(t, exec.Command("go", "build", "-C", filepath.Join("..", "..", ".."), "-o", binary, "."))
	f.masters = faulty.StartGroup(t, 3, "--appendonly", "yes", "--appendfsync", "always")
	var addresses []string
	for _, m := range f.masters {
		addresses = append(addresses, m.Addr())
	}
	settings := []string{"--masters", strings.Join(addresses, ","), "--max-ttl", longest.String(), "--max-keep", longest.String()}
	if !guarded {
		settings = append(settings, "--restart-guard", "off")
	}
	run(t, exec.Command(binary, append([]string{"bootstrap", "--master-timeout", "5s"}, settings...)...))
	for range 2 {
		listen := faulty.FreeAddr(t)
		f.daemons = append(f.daemons, faulty.StartProgram(t, listen, binary, clean(), append([]string{"--listen", listen}, settings...)...))
	}
	t.Cleanup(func() {
		for _, d := range f.daemons {
			for line := range strings.Lines(d.Output()) {
				if strings.Contains(line, "level=ERROR") || strings.Contains(line, "panic") {
					t.Errorf("a daemon complains: %s", line)
				}
			}
		}
	})
	return f
}

func run(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.Env = clean()
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, output)
	}
}

// clean is the environment without the variables that configure a daemon.
func clean() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "REDLOCKD_") })
}
