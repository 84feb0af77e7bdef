//go:build !linux

package main

import "syscall"

// endsWithUs: other kernels leave the children of a driver that died to init.
func endsWithUs() *syscall.SysProcAttr { return nil }

// ownGroup: so that a program is killed together with what it has started.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
