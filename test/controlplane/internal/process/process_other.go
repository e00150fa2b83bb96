//go:build !unix

package process

import (
	"os"
	"syscall"
)

func attributes(bool) *syscall.SysProcAttr { return nil }

func separate() *syscall.SysProcAttr { return nil }

// send can only kill here; groups and polite signals are a matter of unix systems.
func send(pid int, _ bool, _ syscall.Signal) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}
