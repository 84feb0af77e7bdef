//go:build !linux

package cli

import (
	"os/exec"
	"syscall"
)

// prepare: only Linux ends a process with its parent.
func prepare(*exec.Cmd) {}

func signal(command *exec.Cmd, s syscall.Signal) { _ = command.Process.Signal(s) } // a command that has ended needs none
