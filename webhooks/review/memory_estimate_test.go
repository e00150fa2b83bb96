package review_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

// TestEstimateMemory shows that the estimate is about the memory of the values, or up to four times as much.
func TestEstimateMemory(t *testing.T) {
	members := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"k%d":%d`, i, i))
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	repeated := func(item string, n int) string { return `{"a":[` + item + strings.Repeat(","+item, n-1) + `]}` }
	for name, tc := range map[string]struct{ reason, text string }{
		"Wide":    {"large objects take memory for each member", members(20_000)},
		"Medium":  {"objects take memory beyond eight members", repeated(members(50), 400)},
		"Small":   {"small objects take the memory of eight members", repeated(`{"a":1}`, 20_000)},
		"Lists":   {"lists take memory for each item", repeated("[1,2,3]", 20_000)},
		"Numbers": {"numbers take the memory of an interface", repeated("1000", 50_000)},
		"Strings": {"strings take the memory of their characters", repeated(`"some text of usual length"`, 20_000)},
	} {
		t.Run(name, func(t *testing.T) {
			used, estimate := decodedBytes(t, tc.text), review.EstimateMemory([]byte(tc.text))
			// With the race detector, values take more memory than in a program.
			if estimate < used*2/3 || estimate > 4*used {
				t.Errorf("%s: the values take %d bytes, the estimate is %d", tc.reason, used, estimate)
			}
		})
	}
}

// decodedBytes returns the memory of a decoded text together with the text.
func decodedBytes(t *testing.T, text string) int64 {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC() // pools keep their objects for one collection
	runtime.ReadMemStats(&before)
	body := []byte(text)
	value, err := jsontext.DecodeObject(body)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(value)
	runtime.KeepAlive(body)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}
