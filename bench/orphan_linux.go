package main

import "syscall"

// killedWithParent makes the kernel kill the process when the benchmark dies.
func killedWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
