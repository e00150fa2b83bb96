package forgery_test

import (
	"runtime"
	"time"
)

// expense is what a write has cost the process, with all that came of it.
type expense struct {
	bytes uint64
	cpu   time.Duration // zero where it cannot be told
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
