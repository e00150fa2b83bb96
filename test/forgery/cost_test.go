package forgery_test

import (
	"runtime"
	"time"
)

// writeCost contains the cost of a write and its consequences to the process.
type writeCost struct {
	bytes uint64
	cpu   time.Duration // zero where it cannot be measured
}

func cost(act func() (writes int)) writeCost {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu := processCPU()
	writes := max(act(), 1)
	cpu = processCPU() - cpu
	runtime.ReadMemStats(&after)
	return writeCost{bytes: (after.TotalAlloc - before.TotalAlloc) / uint64(writes), cpu: cpu / time.Duration(writes)}
}
