//go:build unix

package forgery_test

import (
	"syscall"
	"time"
)

// processCPU is the CPU that the process has used up.
func processCPU() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
