package progress_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// TestCloneSharesNothing looks at every field, also at those that are added some day.
func TestCloneSharesNothing(t *testing.T) {
	record := progress.Record{
		Started: &moment, Stopped: &moment, Delayed: &moment, Purpose: ptr.To("create"), Retries: ptr.To(int64(1)),
		Success: ptr.To(true), Failure: ptr.To(false), Message: ptr.To("later"), Subrefs: []string{"a/x"},
		Succeeded: []string{"y"},
		Unknown:   object{"future": list{"z"}},
	}
	clone := record.Clone()
	if diff := cmp.Diff(record, clone, cmpopts.IgnoreUnexported(progress.Record{})); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	of, other := reflect.ValueOf(record), reflect.ValueOf(clone)
	for i := range of.NumField() {
		field := of.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		if of.Field(i).IsNil() {
			t.Errorf("%s: the test does not fill it", field.Name)
		}
		if of.Field(i).Pointer() == other.Field(i).Pointer() {
			t.Errorf("%s is shared", field.Name)
		}
	}
}
