package forgery_test

import (
	"runtime"
	"time"
)

// expense contains the cost of a write and its consequences to the process.
type expense struct {
	bytes uint64
	cpu   time.Duration // zero where it cannot be measured
}

func cost(act func() (writes int)) expense {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu := used()
	writes := max(act(), 1)
	cpu = used() - cpu
	runtime.ReadMemStats(&after)
	return expense{bytes: (after.TotalAlloc - before.TotalAlloc) / uint64(writes), cpu: cpu / time.Duration(writes)}
}
