package main

import "syscall"

// endsWithUs has the kernel kill what a driver that died left running.
func endsWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// ownGroup: so that a program is killed together with what it has started.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
