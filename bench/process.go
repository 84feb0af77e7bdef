// How do the processes that the benchmark needs begin and end? Each has one
// goroutine that waits for it, and whoever ends it waits for that goroutine, so
// that no process is signalled after its number may belong to another.
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
	startPatience = time.Minute          // for a process to come up or to end, on a busy machine
	lookInterval  = 2 * time.Millisecond // between two looks at it
)

// process is one run of a program. Its output goes to a file.
type process struct {
	cmd    *exec.Cmd
	output string
	exited chan struct{} // closed when it is gone; err is valid then
	err    error         // how it ended
}

func startProcess(cmd *exec.Cmd, output string) (*process, error) {
	file, err := os.OpenFile(output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file
	cmd.SysProcAttr = endsWithUs()
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

// text is what the process has printed.
func (p *process) text() string {
	text, err := os.ReadFile(p.output)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// kill ends the process at once, also a stopped one, and returns when it is gone.
func (p *process) kill() {
	p.cmd.Process.Kill() // of a process that has ended: an error, rightly ignored
	<-p.exited
}

// terminate asks the process to end, and kills it when it does not.
func (p *process) terminate() {
	p.signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(startPatience):
		p.kill()
	}
}

func (p *process) signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

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
