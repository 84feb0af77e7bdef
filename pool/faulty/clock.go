// Stepped clocks: the server runs with a small preloaded library of ours, built here, that
// adds the number in a file to the wall clock.
// (libfaketime cannot do it: it deadlocks with the jemalloc redis-server is
// linked with, see its issues 130 and 478.)

package faulty

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

//go:embed clock.c
var shimSource []byte

// builtShim is the preloadable library, built once a process. The file no longer has a
// name, so nothing is left behind; processes receive it as a descriptor.
var builtShim = sync.OnceValues(buildShim)

func buildShim() (*os.File, error) {
	dir, err := os.MkdirTemp("", "faulty-clock-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "clock.so")
	cc := exec.Command("cc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", path, "-x", "c", "-")
	cc.Stdin = bytes.NewReader(shimSource)
	if output, err := cc.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the clock shim with cc: %w\n%s", err, output)
	}
	return os.Open(path)
}

// steppedClock is the clock of one server. It outlives the server's process, so
// a server that restarts finds its clock as wrong as it was.
type steppedClock struct {
	shim *os.File
	file *os.File // its first 8 bytes are the offset

	mu     sync.Mutex
	offset time.Duration
}

// newClock makes a clock that is right. The test is skipped where there is no C
// compiler.
func newClock(t testing.TB) *steppedClock {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skipf("a server with a stepped clock needs a C compiler named cc: %v", err)
	}
	shim, err := builtShim()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "offset"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	c := &steppedClock{shim: shim, file: file}
	if err := c.step(0); err != nil {
		t.Fatal(err)
	}
	return c
}

// step adds d to the offset; it is in force when step returns.
func (c *steppedClock) step(d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var word [8]byte
	binary.NativeEndian.PutUint64(word[:], uint64(c.offset+d))
	if _, err := c.file.WriteAt(word[:], 0); err != nil {
		return fmt.Errorf("stepping the clock by %v: %w", d, err)
	}
	c.offset += d
	return nil
}

// install makes cmd run under this clock. It must be the only one to give cmd
// descriptors: the shim is its fourth.
func (c *steppedClock) install(cmd *exec.Cmd) {
	cmd.ExtraFiles = []*os.File{c.shim}
	cmd.Env = append(os.Environ(), "LD_PRELOAD=/proc/self/fd/3", "FAULTY_CLOCK="+c.file.Name())
}
