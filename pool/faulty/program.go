// Program is a program that serves on a port, such as the daemon under
// test. A test kills it, stops it and starts it again in the same place.

package faulty

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Program is one command line that is run again and again. It ends with the
// test. The methods may be called from any goroutine; what fails in them fails
// the test.
type Program struct {
	t      testing.TB
	binary string
	args   []string
	env    []string
	addr   string
	output string // file of all runs, one after the other

	mu      sync.Mutex
	process *process // nil while it does not run
}

// FreeAddr is a loopback address that is reserved for the test: nothing listens
// there unless the test does.
func FreeAddr(t testing.TB) string {
	t.Helper()
	r, err := reservePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.release)
	return r.addr()
}

// StartProgram runs binary, which is to accept connections at addr, and returns
// when it does. env is its whole environment.
func StartProgram(t testing.TB, addr, binary string, env []string, args ...string) *Program {
	t.Helper()
	p := &Program{t: t, binary: binary, args: args, env: env, addr: addr, output: filepath.Join(t.TempDir(), "output")}
	t.Cleanup(p.Kill)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.startLocked(); err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(binary), err, p.Output())
	}
	return p
}

func (p *Program) startLocked() error {
	cmd := exec.Command(p.binary, p.args...)
	cmd.Env = p.env
	process, err := startProcess(cmd, p.output)
	if err != nil {
		return err
	}
	if err := until(process.exited, p.accepts); err != nil {
		process.kill()
		return fmt.Errorf("accepting connections at %s: %w", p.addr, err)
	}
	p.process = process
	return nil
}

func (p *Program) accepts() bool {
	c, err := Dial(p.addr, time.Second)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// Addr returns the address at which it listens, through all its runs.
func (p *Program) Addr() string { return p.addr }

// Output is everything that its runs have printed.
func (p *Program) Output() string {
	text, err := os.ReadFile(p.output)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Pid is the number of the process, 0 while there is none.
func (p *Program) Pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil {
		return 0
	}
	return p.process.pid()
}

// Kill ends it with SIGKILL, also when it is stopped, and returns when it has
// ended. Killing what does not run does nothing.
func (p *Program) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killLocked()
}

func (p *Program) killLocked() {
	if p.process != nil {
		p.process.kill()
		p.process = nil
	}
}

// End sends a signal upon which it shuts down, such as SIGTERM, and returns
// when it has ended; if that takes too long the test fails.
func (p *Program) End(s syscall.Signal) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil {
		return
	}
	p.process.cmd.Process.Signal(s)
	select {
	case <-p.process.exited:
		p.process = nil
	case <-time.After(maxWait):
		p.t.Errorf("%s did not end within %v of %v", filepath.Base(p.binary), maxWait, s)
		p.killLocked()
	}
}

// Restart kills it, if it still runs, and starts it again with the same arguments.
func (p *Program) Restart() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killLocked()
	if err := p.startLocked(); err != nil {
		p.t.Errorf("restarting %s: %v; it printed:\n%s", filepath.Base(p.binary), err, lastLines(p.Output()))
	}
}

// Replace has the next start run another command line in its place, at the same address:
// another version of the program, for example.
func (p *Program) Replace(binary string, env []string, args ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.binary, p.env, p.args = binary, env, args
}

// Stop freezes it with SIGSTOP and returns when it is frozen.
func (p *Program) Stop() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil {
		p.t.Errorf("Stop: %s is not running", filepath.Base(p.binary))
	} else if err := p.process.stop(); err != nil {
		p.t.Errorf("stopping %s: %v", filepath.Base(p.binary), err)
	}
}

// Cont lets it run again.
func (p *Program) Cont() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil {
		p.t.Errorf("Cont: %s is not running", filepath.Base(p.binary))
	} else if err := p.process.cont(); err != nil {
		p.t.Errorf("continuing %s: %v", filepath.Base(p.binary), err)
	}
}

// lastLines keeps a long output from hiding what it is about.
func lastLines(text string) string {
	const shown = 40
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-shown):], "\n")
}
