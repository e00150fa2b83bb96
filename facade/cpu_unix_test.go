//go:build unix

package kopf_test

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime returns the CPU time of all threads of the process.
func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
