package growth

import (
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"
)

const (
	// maxAllocRatio is how much more may be allocated for four times the size: 2.5 times for each doubling. It is asked
	// over two of them, as slices and maps grow in steps. What grows with the square takes sixteen times as much.
	maxAllocRatio = 2.5 * 2.5
	// sizeRatio is the ratio of the two sizes whose processor times are compared. It is large, because an element takes
	// up to five times as long once the data no longer fits into the processor's cache.
	sizeRatio = 32
	// maxTimeRatio limits the ratio of the two processor times. Linear work takes 32 times as long, and up to 160 times
	// beyond the cache; quadratic work takes 1,024 times as long.
	maxTimeRatio = 8 * sizeRatio
	// runs are compared by the best of them: others on the machine can only make a run slower.
	runs = 8
	// memoryLimit is the limit at which the garbage collector runs even during the measurement.
	memoryLimit = 1 << 30
)

// Linear fails the test if the work grows faster than its size: if four times the size needs more than 6.25 times the
// allocated bytes or allocations, or more than 256 times the processor time of an eighth of the size. The size
// is best so large that the work takes some milliseconds. What prepare does is not measured; it runs before every run.
func Linear(t *testing.T, size int, prepare func(size int) (work func())) {
	t.Helper()
	bytes, objects := allocated(prepare(size))
	moreBytes, moreObjects := allocated(prepare(4 * size))
	if ratio := float64(moreBytes) / float64(max(bytes, 1)); bytes > 64<<10 && ratio > maxAllocRatio {
		t.Errorf("four times the size of %d allocates %.1f times the bytes: %d, then %d", size, ratio, bytes, moreBytes)
	}
	if ratio := float64(moreObjects) / float64(max(objects, 1)); objects > 100 && ratio > maxAllocRatio {
		t.Errorf(
			"four times the size of %d makes %.1f times the allocations: %d, then %d", size, ratio, objects,
			moreObjects,
		)
	}
	small := max(size*4/sizeRatio, 1)
	var short, long time.Duration
	for range runs {
		short = least(short, measureCPU(prepare(small)))
		long = least(long, measureCPU(prepare(sizeRatio*small)))
		if float64(long) < maxTimeRatio*float64(short) {
			return
		}
	}
	t.Errorf("%d times the size of %d takes %.1f times the processor time: %s, then %s",
		sizeRatio, small, float64(long)/float64(short), short, long)
}

func allocated(work func()) (bytes, objects uint64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, after.Mallocs - before.Mallocs
}

// measureCPU is processor time, not that of a clock: the machine may be busy with something else. It excludes the
// garbage collector, which does not run at all for a few megabytes, so that slightly more work would seem to grow
// faster.
func measureCPU(work func()) time.Duration {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(memoryLimit))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	before := used()
	work()
	return used() - before
}

func used() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func least(former, latter time.Duration) time.Duration {
	if former == 0 {
		return latter
	}
	return min(former, latter)
}
