//go:build !linux

package faulty

import "syscall"

// killWithParent has no equivalent here: a test process that dies without cleaning
// up leaves its servers running.
func killWithParent() *syscall.SysProcAttr { return nil }
