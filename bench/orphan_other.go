//go:build !linux

package main

import "syscall"

// killedWithParent has no equivalent on this system: the processes of a killed benchmark keep
// running.
func endsWithUs() *syscall.SysProcAttr { return nil }
