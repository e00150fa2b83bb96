package progress_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

func objectWithAnnotations(annotations object) object {
	return object{"metadata": object{"annotations": annotations}}
}

func objectWithStatus(value any) object {
	return object{"status": object{"kopf": object{"progress": value}}}
}

// TestFetchFromBrokenObject shows that malformed metadata is not a MalformedError: the record could not be removed
// either.
func TestFetchFromBrokenObject(t *testing.T) {
	_, err := progress.Annotations{}.Fetch(object{"metadata": "x"}, "fn")
	var malformed *progress.MalformedError
	if err == nil || errors.As(err, &malformed) {
		t.Errorf("want an error other than MalformedError, got %v", err)
	}
}

func TestStoreErrors(t *testing.T) {
	unencodable := progress.Record{Unknown: object{"ratio": math.NaN()}}
	cases := map[string]struct {
		reason  string
		storage progress.Writer
		patch   object
		record  progress.Record
		names   string
	}{
		"Unencodable": {
			reason:  "a record that is not JSON is an error",
			storage: progress.Annotations{}, patch: object{}, record: unencodable,
			names: "ratio",
		},
		"OneOfMany": {
			reason:  "an error of one storage is an error of several",
			storage: progress.Multi{progress.Smart{}}, patch: object{},
			record: unencodable, names: "ratio",
		},
		"NoPlace": {
			reason: "a patch that removes all annotations is an error", storage: progress.Annotations{},
			patch: object{"metadata": object{"annotations": nil}}, names: "annotations",
		},
		"NoPlaceInStatus": {
			reason:  "a patch that replaces the status is an error",
			storage: progress.Status{}, patch: object{"status": "x"},
			names: "status",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			vectors.Unchanged(t, tc.patch)
			err := tc.storage.Store(tc.patch, object{}, "fn", tc.record)
			if err == nil || !strings.Contains(err.Error(), tc.names) {
				t.Errorf("%s\ngot error %v, want one that names %q", tc.reason, err, tc.names)
			}
		})
	}
}

// TestPatchWithoutPlace shows that Purge and Touch do not change a patch that replaces the record anyway.
func TestPatchWithoutPlace(t *testing.T) {
	body := object{
		"metadata": object{"annotations": object{"example.org/fn": "{}"}},
		"status":   object{"kopf": object{"progress": object{"fn": object{}}}},
	}
	patch := object{"metadata": object{"annotations": nil}, "status": "x"}
	vectors.Unchanged(t, body)
	vectors.Unchanged(t, patch)
	for _, storage := range []progress.Writer{progress.Annotations{Prefix: "example.org"}, progress.Status{}} {
		storage.Purge(patch, body, "fn")
		storage.Touch(patch, body, ptr.To("now"))
	}
}

// TestStoredIsFetched shows that a stored record is fetched unchanged, is cleared from essences, and is gone after a
// purge.
func TestStoredIsFetched(t *testing.T) {
	storages := map[string]progress.Storage{
		"Annotations": progress.Annotations{Prefix: "example.org"},
		"Verbose":     progress.Annotations{Verbose: true},
		"WithoutV1":   progress.Annotations{WithoutV1: true},
		"Status":      progress.Status{},
		"Named":       progress.Status{Name: "my.op"},
		"Field":       progress.Status{Field: diff.Path{"status", "a.b", "c"}},
		"Multi":       progress.Multi{progress.Status{}, progress.Annotations{Prefix: "example.org"}},
		"Smart":       progress.Smart{},
	}
	record := progress.Record{
		Started: &testTime, Delayed: &testTime, Purpose: ptr.To("create"), Retries: ptr.To(int64(2)),
		Success: ptr.To(false),
		Failure: ptr.To(false), Message: ptr.To("ünï \"<&>\" 😀\n"), Subrefs: []string{"fn/a", "fn/b"},
	}
	for name, storage := range storages {
		ids := map[string]string{"Plain": "fn", "Sub": "fn/sub.1", "Long": strings.Repeat("long/", 20) + "fn"}
		for kind, id := range ids {
			t.Run(name+"/"+kind, func(t *testing.T) {
				patch := object{}
				if err := storage.Store(patch, object{}, id, record); err != nil {
					t.Fatalf("cannot store: %v", err)
				}
				vectors.Unchanged(t, patch) // from here on, it is an object
				fetched, err := storage.Fetch(patch, id)
				if delta := cmp.Diff(&record, fetched); delta != "" || err != nil {
					t.Errorf("got error %v; -stored, +fetched:\n%s", err, delta)
				}
				if delta := cmp.Diff(object{}, storage.Clear(patch)); delta != "" {
					t.Errorf("-want, +got as an essence:\n%s", delta)
				}
				removal := object{}
				storage.Purge(removal, patch, id)
				for path, value := range leavesOf(removal, nil) {
					if value != nil {
						t.Errorf("the purge puts %v at %s", value, path)
					}
				}
				if len(removal) == 0 {
					t.Error("the purge changes nothing")
				}
			})
		}
	}
}

// leavesOf returns the values that are not mappings, by path.
func leavesOf(tree object, path diff.Path) map[string]any {
	found := map[string]any{}
	for key, value := range tree {
		inner := append(path[:len(path):len(path)], key)
		if mapping, ok := value.(object); ok {
			for place, leaf := range leavesOf(mapping, inner) {
				found[place] = leaf
			}
			continue
		}
		found[inner.String()] = value
	}
	return found
}

func TestMultiTouchesAllAndReadsTheFirst(t *testing.T) {
	storage := progress.Multi{progress.Annotations{Prefix: "kopf.zalando.org"}, progress.Status{}}
	patch := object{}
	storage.Touch(patch, object{}, ptr.To("now"))
	want := object{
		"metadata": object{"annotations": object{"kopf.zalando.org/touch-dummy": "now"}},
		"status":   object{"kopf": object{"dummy": "now"}},
	}
	if delta := cmp.Diff(want, patch); delta != "" {
		t.Errorf("touching: -want, +got:\n%s", delta)
	}
	body := objectWithStatus(object{"fn": object{"retries": int64(2)}})
	for reason, tc := range map[string]struct {
		id   string
		want *progress.Record
	}{
		"the record of the second storage is read": {id: "fn", want: &progress.Record{Retries: ptr.To(int64(2))}},
		"a record that no storage has is absent":   {id: "other"},
	} {
		got, err := storage.Fetch(body, tc.id)
		if delta := cmp.Diff(tc.want, got); delta != "" || err != nil {
			t.Errorf("%s\ngot error %v; -want, +got:\n%s", reason, err, delta)
		}
	}
}

// TestStatusIsBelievedOnlyOfNewObjects shows that a record in the status counts for new objects only. A client that
// may write only the status must not be able to skip a deletion or to undo handled changes (deviation
// D-status-rights).
func TestStatusIsBelievedOnlyOfNewObjects(t *testing.T) {
	const own = "kopf.zalando.org/fn"
	cases := map[string]struct {
		reason   string
		metadata object
		want     bool
	}{
		"New": {reason: "a record in the status counts for a new object", want: true},
		"Deleted": {
			reason:   "a record in the status does not count for a deleted object",
			metadata: object{"deletionTimestamp": "2024-05-06T07:08:09Z"},
		},
		"Remembered": {
			reason:   "a record in the status does not count for an object that was handled",
			metadata: object{"annotations": object{"kopf.zalando.org/last-handled-configuration": "{}"}},
		},
		"OwnIsNull": {
			reason:   "an annotation of null does not count against the status",
			metadata: object{"annotations": object{own: "null"}}, want: true,
		},
		"OtherPrefix": {
			reason:   "an annotation with a longer prefix does not count against the status",
			metadata: object{"annotations": object{"kopf.zalando.organic/fn": "{}"}}, want: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			body := objectWithStatus(object{"fn": object{"retries": int64(2)}})
			if tc.metadata != nil {
				body["metadata"] = tc.metadata
			}
			record, err := progress.Smart{}.Fetch(body, "fn")
			if (record != nil) != tc.want || err != nil {
				t.Errorf("%s\ngot %v with error %v, want a record: %v", tc.reason, record, err, tc.want)
			}
		})
	}
}

// TestStatusForgetsFormerKeys shows that a new record in the status has a null for each absent key, because a
// merge-patch keeps keys that it does not name.
func TestStatusForgetsFormerKeys(t *testing.T) {
	patch := object{}
	if err := (progress.Status{}).Store(patch, object{}, "fn", progress.Record{Retries: ptr.To(int64(1))}); err != nil {
		t.Fatalf("cannot store: %v", err)
	}
	value, ok := diff.ResolvePath(patch, diff.Path{"status", "kopf", "progress", "fn", "delayed"})
	if !ok || value != nil {
		t.Errorf("got delayed = %v (%v), want a null", value, ok)
	}
}

func TestClearOfNothingAllocatesNothing(t *testing.T) {
	essence := object{
		"metadata": object{"labels": object{"a": "b"}, "annotations": object{"example.org/note": "by hand"}},
		"spec":     object{"size": int64(3)},
		"status":   object{"kopf": object{"dummy": "x"}},
	}
	for name, storage := range map[string]progress.Reader{
		"Default": progress.Smart{}, "Prefixed": progress.Annotations{
			Prefix: "databases.of.a.long.domain.example.org",
		}, "Status": progress.Status{},
	} {
		if got := testing.AllocsPerRun(100, func() { storage.Clear(essence) }); got != 0 {
			t.Errorf("%s: got %v allocations, want none", name, got)
		}
	}
}

func TestClearOfNil(t *testing.T) {
	for name, storage := range map[string]progress.Reader{
		"Annotations": progress.Annotations{}, "Status": progress.Status{}, "Smart": progress.Smart{},
		"Multi": progress.Multi{},
	} {
		if got := storage.Clear(nil); got != nil {
			t.Errorf("%s: got %v, want nil for a nil essence", name, got)
		}
	}
}
