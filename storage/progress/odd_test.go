package progress_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// Something else than a mapping on the way to the records makes Kopf fail, by an accident.
func TestOddWays(t *testing.T) {
	storage := progress.Status{}
	for _, odd := range []any{nil, "text", list{int64(1)}, int64(5)} {
		essence := object{"status": object{"kopf": odd}, "spec": object{}}
		vectors.Unchanged(t, essence)
		if delta := cmp.Diff(essence, storage.Clear(essence)); delta != "" {
			t.Errorf("there is nothing to be cleared from %v: -want, +got:\n%s", odd, delta)
		}
	}
	body := object{"status": object{"kopf": object{"progress": object{"fn": object{"retries": int64(1)}}}}}
	patch := object{"status": object{"kopf": "text"}}
	storage.Purge(patch, body, "fn")
	if delta := cmp.Diff(object{"status": object{"kopf": "text"}}, patch); delta != "" {
		t.Errorf("what the patch sets goes over the record: -want, +got:\n%s", delta)
	}
	value := "2024-05-06T07:08:09+00:00"
	storage.Touch(patch, body, &value)
	if delta := cmp.Diff(object{"status": object{"kopf": "text"}}, patch); delta != "" {
		t.Errorf("there is no place to be touched: -want, +got:\n%s", delta)
	}
}

func TestRecordsThatAreNoObjects(t *testing.T) {
	for name, body := range map[string]object{
		"annotation": {"metadata": object{"annotations": object{"kopf.zalando.org/fn": "5"}}},
		"status":     {"status": object{"kopf": object{"progress": object{"fn": `{"retries":1}`}}}},
	} {
		if record, err := (progress.Smart{}).Fetch(body, "fn"); err == nil {
			t.Errorf("%s: it is no record, and is told at once: got %v", name, record)
		}
	}
}
