package execution_test

import (
	"fmt"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// BenchmarkRestore measures the cost of an object with ten handlers: without records, as at the beginning of a cause,
// and with a record of each.
func BenchmarkRestore(b *testing.B) {
	ids := make([]string, 10)
	full := object{}
	for i := range ids {
		ids[i] = fmt.Sprintf("handler_%d", i)
		record := progress.Record{Started: &epoch, Delayed: &epoch, Purpose: ptr.To("create"),
			Retries: ptr.To(int64(i)),
			Success: ptr.To(false), Failure: ptr.To(false), Message: ptr.To("later")}
		if err := storage.Store(full, object{}, ids[i], record); err != nil {
			b.Fatal(err)
		}
	}
	bodies := map[string]object{
		"no records": {"metadata": object{"annotations": object{"a": "b"}}}, "ten records": full,
	}
	for name, body := range bodies {
		b.Run(name, func(b *testing.B) {
			read := reader(body)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := execution.RestoreState(read, ids, ids[:3], "create", epoch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
