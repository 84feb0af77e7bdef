// Processes of servers and programs. Exactly one goroutine waits for it, and every function
// that ends it waits for that goroutine, so that no process is
// signalled after its number may belong to another.

package faulty

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	maxWait  = 20 * time.Second     // for a process to come up or to stop, on a busy machine
	interval = 2 * time.Millisecond // between two checks of it
)

var errTimeout = fmt.Errorf("did not happen within %v", maxWait)

// until calls happened until it is true, for maxWait at most
// and, if not nil, until ended is closed.
func until(ended <-chan struct{}, happened func() bool) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	deadline := time.After(maxWait)
	for !happened() {
		select {
		case <-ticker.C:
		case <-deadline:
			return errTimeout
		case <-ended:
			return errors.New("the process has ended")
		}
	}
	return nil
}

// process is one run of a program.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed by reap
}

// startProcess runs cmd with its output going to file, which is appended to and
// needs no goroutine.
func startProcess(cmd *exec.Cmd, file string) (*process, error) {
	output, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer output.Close()
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = killWithParent()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, exited: make(chan struct{})}
	go p.reap()
	return p, nil
}

func (p *process) reap() {
	p.cmd.Wait() // how a process that is killed on purpose ended does not matter
	close(p.exited)
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill ends the process at once and returns when it is gone.
func (p *process) kill() {
	p.cmd.Process.Signal(syscall.SIGCONT)
	p.cmd.Process.Kill()
	<-p.exited
}

// stop returns when the process runs no more, which is some time after the
// signal: until then it may still answer.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return until(p.exited, p.stopped)
}

func (p *process) cont() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// stopped reads the state letter behind the name in /proc; where there is none
// the signal is trusted.
func (p *process) stopped() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid()))
	if err != nil {
		return true
	}
	return bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T"))
}
