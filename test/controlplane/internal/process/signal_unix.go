//go:build unix

package process

import "syscall"

func send(pid int, group bool, signal syscall.Signal) error {
	if group {
		pid = -pid
	}
	return syscall.Kill(pid, signal)
}

func separate() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
