package cli

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// prepare gives the command a group of its own, so that a signal reaches what it
// has started, too, and lets it end with us. On a terminal its group is the one
// that receives the input.
func prepare(command *exec.Cmd) {
	attributes := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if in, ok := command.Stdin.(*os.File); ok {
		if _, err := unix.IoctlGetTermios(int(in.Fd()), unix.TCGETS); err == nil {
			attributes.Foreground, attributes.Ctty = true, int(in.Fd())
		}
	}
	command.SysProcAttr = attributes
}

// signal reaches the command and what it has started.
func signal(command *exec.Cmd, s syscall.Signal) { _ = syscall.Kill(-command.Process.Pid, s) } // a command that has ended needs none
