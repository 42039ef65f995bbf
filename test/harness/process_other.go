//go:build !linux

package harness

import "syscall"

// dieWithParent has no counterpart here: a killed test run may leave servers.
func dieWithParent(*syscall.SysProcAttr) {}
