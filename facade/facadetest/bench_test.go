package facadetest_test

import (
	"context"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
)

// BenchmarkCall measures the cost of one call of a handler.
func BenchmarkCall(b *testing.B) {
	handler := func(_ context.Context, c *DatabaseChange) error {
		c.Patch(func(db *Database) { db.Status.Host = "db-1" })
		return nil
	}
	b.ReportAllocs()
	for b.Loop() {
		if got := facadetest.NewChange(orders()).Call(b.Context(), handler); got.Err != nil {
			b.Fatal(got.Err)
		}
	}
}
