package faulty

import "syscall"

// killWithParent has the kernel kill a server whose test process died without
// cleaning up, by a panic or a time-out.
func killWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
