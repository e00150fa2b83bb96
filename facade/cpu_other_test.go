//go:build !unix

package kopf_test

import (
	"testing"
	"time"
)

// cpuTime returns zero, as the CPU time is not available on this system.
func cpuTime(testing.TB) time.Duration { return 0 }
