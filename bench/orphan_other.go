//go:build !linux

package main

import "syscall"

// endsWithUs has no equivalent here: a benchmark that is killed leaves its
// processes running.
func endsWithUs() *syscall.SysProcAttr { return nil }
