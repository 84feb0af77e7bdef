// The processes of a run. One goroutine waits for each process, and the code that ends a
// process waits for that goroutine. So no signal goes to a process number that is used
// again.

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	startPatience = 30 * time.Second     // for a process to come up or to end, on a busy machine
	lookInterval  = 5 * time.Millisecond // between two looks at it
)

// process is one run of a server. Its output goes to a file.
type process struct {
	cmd    *exec.Cmd
	output string
	exited chan struct{} // closed when it is gone; err is valid then
	err    error         // how it ended
}

func startProcess(output, name string, args ...string) (*process, error) {
	file, err := os.OpenFile(output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p := &process{cmd: exec.Command(name, args...), output: output, exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = file, file, endsWithUs()
	p.cmd.Env = append(withoutOptions(os.Environ()), "REDLOCKD_DRAIN_GRACE=0")
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.reap()
	return p, nil
}

// withoutOptions: the daemon takes REDLOCKD_… for its options, and those of who
// runs this are not meant.
func withoutOptions(environ []string) []string {
	return slices.DeleteFunc(environ, func(e string) bool { return strings.HasPrefix(e, "REDLOCKD_") })
}

func (p *process) reap() {
	p.err = p.cmd.Wait()
	close(p.exited)
}

// text is what the process has printed.
func (p *process) text() string {
	text, err := os.ReadFile(p.output)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// terminate asks the process to end, kills it when it does not, and returns
// when it is gone.
func (p *process) terminate() {
	p.cmd.Process.Signal(syscall.SIGTERM) // of a process that has ended: an error, rightly ignored
	select {
	case <-p.exited:
	case <-time.After(startPatience):
		p.cmd.Process.Kill()
		<-p.exited
	}
}

// until looks at something until it has happened, the process has ended or
// patience is over.
func (p *process) until(what string, happened func() bool) error {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	deadline := time.After(startPatience)
	for !happened() {
		select {
		case <-ticker.C:
		case <-deadline:
			return fmt.Errorf("%s: not within %v; it printed:\n%s", what, startPatience, p.text())
		case <-p.exited:
			return errors.Join(fmt.Errorf("%s: the process has ended; it printed:\n%s", what, p.text()), p.err)
		}
	}
	return nil
}
