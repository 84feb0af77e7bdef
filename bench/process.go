// The processes of the benchmark. One goroutine waits for each process, and the code that
// ends a process waits for that goroutine. So no signal goes to a process number that is
// used again.

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	startTimeout = time.Minute          // for the start or the end of a process, on a busy machine
	pollInterval = 2 * time.Millisecond // between two checks in waitFor
)

// process is one run of a program. Its output goes to a file.
type process struct {
	cmd    *exec.Cmd
	output string
	exited chan struct{} // closed when the process has ended; err is valid then
	err    error         // the result of Wait
}

func startProcess(cmd *exec.Cmd, output string) (*process, error) {
	file, err := os.OpenFile(output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file
	cmd.Env = append(cmd.Environ(), "REDLOCKD_DRAIN_GRACE=0") // of a daemon
	cmd.SysProcAttr = killedWithParent()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, output: output, exited: make(chan struct{})}
	go p.reap()
	return p, nil
}

func (p *process) reap() {
	p.err = p.cmd.Wait()
	close(p.exited)
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// text returns the output of the process so far.
func (p *process) text() string {
	text, err := os.ReadFile(p.output)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// kill ends the process at once, also a stopped one, and returns once it has ended.
func (p *process) kill() {
	p.cmd.Process.Kill() // fails if the process has ended already, which is fine
	<-p.exited
}

// terminate sends SIGTERM, and kills the process if it does not end.
func (p *process) terminate() {
	p.signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(startTimeout):
		p.kill()
	}
}

func (p *process) signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// waitFor polls until the condition holds, the process has ended or startTimeout is over.
func (p *process) waitFor(what string, happened func() bool) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	deadline := time.After(startTimeout)
	for !happened() {
		select {
		case <-ticker.C:
		case <-deadline:
			return fmt.Errorf("%s: not within %v; it printed:\n%s", what, startTimeout, p.text())
		case <-p.exited:
			return errors.Join(fmt.Errorf("%s: the process has ended; it printed:\n%s", what, p.text()), p.err)
		}
	}
	return nil
}
