package indexes_test

import (
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// Of 50,000 pods by two keys: how long it takes to fill, and what stays in memory.
func BenchmarkFill50000(b *testing.B) {
	for b.Loop() {
		before := heap()
		index := filled(50_000)
		b.ReportMetric(float64(heap()-before)/50_000, "heap-B/pod")
		runtime.KeepAlive(index)
	}
}

func BenchmarkLookup(b *testing.B) {
	index := filled(50_000)
	var key any = "node-7"
	b.ReportAllocs()
	for b.Loop() {
		index.Get(key)
	}
}

// BenchmarkChange replaces the values of one of 50,000 pods, and looks one key up after that.
func BenchmarkChange(b *testing.B) {
	index := filled(50_000)
	var key any = "node-7"
	entries := map[any]any{key: "pod-7", "pod-7": 7}
	b.ReportAllocs()
	for b.Loop() {
		index.Replace(types.UID("pod-7"), entries)
		index.Get(key)
	}
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
