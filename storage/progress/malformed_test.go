package progress_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// TestOddPaths shows that a value other than a mapping on the path to the records is not an error, unlike in Kopf
// (deviations D-clear-scalar, D-purge-scalar).
func TestOddPaths(t *testing.T) {
	storage := progress.Status{}
	for _, odd := range []any{nil, "text", list{int64(1)}, int64(5)} {
		essence := object{"status": object{"kopf": odd}, "spec": object{}}
		vectors.Unchanged(t, essence)
		if delta := cmp.Diff(essence, storage.Clear(essence)); delta != "" {
			t.Errorf("nothing must be cleared from %v: -want, +got:\n%s", odd, delta)
		}
	}
	body := object{"status": object{"kopf": object{"progress": object{"fn": object{"retries": int64(1)}}}}}
	patch := object{"status": object{"kopf": "text"}}
	storage.Purge(patch, body, "fn")
	if delta := cmp.Diff(object{"status": object{"kopf": "text"}}, patch); delta != "" {
		t.Errorf("a purge must not change a patch that replaces the record: -want, +got:\n%s", delta)
	}
	value := "2024-05-06T07:08:09+00:00"
	storage.Touch(patch, body, &value)
	if delta := cmp.Diff(object{"status": object{"kopf": "text"}}, patch); delta != "" {
		t.Errorf("a touch must not change a patch that replaces its field: -want, +got:\n%s", delta)
	}
}

// TestNonObjectRecords shows that a record that is not an object is an error: deviation D-no-object.
func TestNonObjectRecords(t *testing.T) {
	for name, body := range map[string]object{
		"annotation": {"metadata": object{"annotations": object{"kopf.zalando.org/fn": "5"}}},
		"status":     {"status": object{"kopf": object{"progress": object{"fn": `{"retries":1}`}}}},
	} {
		if record, err := (progress.Smart{}).Fetch(body, "fn"); err == nil {
			t.Errorf("%s: a record that is not an object must be an error, got %v", name, record)
		}
	}
}

// FuzzFetch reads any text of an annotation. The result is an error, absent, or a record. A stored record must be
// read as an equal one, including unknown keys and nulls.
func FuzzFetch(f *testing.F) {
	for _, seed := range []string{
		"", "null", "{}", "{", "[]", `{"retries":"three"}`, `{"retries":1e2,"started":"2020","subrefs":[]}`,
		`{"started":"2024-05-06T07:08:09.123456+00:00","delayed":"2024-05-06 ` +
			`07:08:19,5+0230","retries":1,"success":false}`,
		`{"purpose":"create","failure":null,"message":"ü☃😀\u0000\ud800",` +
			`"subrefs":["a/b"],"x":{"y":[1.0,null]},"z":null}`,
		`{"started":"9999-12-31T23:59:59.999999999-00:00"}`,
	} {
		f.Add(seed)
	}
	storages := []progress.Storage{progress.Annotations{Verbose: true}, progress.Status{}}
	f.Fuzz(func(t *testing.T, text string) {
		fetched, err := progress.Smart{}.Fetch(objectWithAnnotations(object{"kopf.zalando.org/fn": text}), "fn")
		var malformed *progress.MalformedError
		if err != nil && !errors.As(err, &malformed) {
			t.Fatalf("got error %v, want a malformed one", err)
		}
		if err != nil || fetched == nil {
			return
		}
		for _, storage := range storages {
			patch := object{}
			if err := storage.Store(patch, object{}, "fn", *fetched); err != nil {
				t.Fatalf("cannot store %v: %v", fetched.JSONFields(), err)
			}
			again, err := storage.Fetch(patch, "fn")
			if err != nil {
				t.Fatalf("cannot fetch the stored record: %v", err)
			}
			if delta := cmp.Diff(fetched, again); delta != "" || !diff.Equal(fetched.JSONFields(), again.JSONFields()) {
				t.Errorf("stored %v, fetched %v", fetched.JSONFields(), again.JSONFields())
			}
		}
	})
}

func TestFetchMalformed(t *testing.T) {
	cases := map[string]struct {
		reason  string
		storage progress.Reader
		body    object
		where   string
		names   string
	}{
		"Cut": {
			reason:  "a record that is not JSON is an error",
			storage: progress.Annotations{},
			body:    objectWithAnnotations(object{"kopf.zalando.org/fn": "{"}),
			where:   "annotation kopf.zalando.org/fn",
			names:   "JSON",
		},
		"List": {
			reason:  "a list is an error, on which Kopf fails later",
			storage: progress.Annotations{Prefix: "example.org"},
			body:    objectWithAnnotations(object{"example.org/fn": "[]"}),
			where:   "annotation example.org/fn",
			names:   "a list",
		},
		"Key": {
			reason:  "the error names the malformed key",
			storage: progress.Smart{},
			body:    objectWithAnnotations(object{"kopf.zalando.org/fn": `{"retries":"three"}`}),
			where:   "annotation kopf.zalando.org/fn",
			names:   "key retries",
		},
		"NotFirst": {
			reason:  "a malformed record is an error even if another storage has a valid one",
			storage: progress.Multi{progress.Annotations{}, progress.Status{}},
			body: object{
				"metadata": objectWithAnnotations(object{"kopf.zalando.org/fn": ""})["metadata"],
				"status":   objectWithStatus(object{"fn": object{}})["status"],
			},
			where: "annotation kopf.zalando.org/fn",
			names: "empty",
		},
		"NoRecords": {
			reason:  "a text in place of the records is an error",
			storage: progress.Status{},
			body:    objectWithStatus("text"),
			where:   "field status.kopf.progress",
			names:   "not a mapping",
		},
		"NoRecord": {
			reason:  "a text in place of a record is an error",
			storage: progress.Smart{},
			body:    objectWithStatus(object{"fn": "{}"}),
			where:   "field status.kopf.progress, key fn",
			names:   "not a mapping",
		},
		"KeyInStatus": {
			reason:  "the types of keys are checked in the status, too",
			storage: progress.Status{Field: diff.Path{"status", "x.y"}},
			body:    object{"status": object{"x.y": object{"fn": object{"success": int64(1)}}}},
			where:   "field status.x.y, key fn",
			names:   "key success",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			record, err := tc.storage.Fetch(tc.body, "fn")
			var malformed *progress.MalformedError
			if !errors.As(err, &malformed) {
				t.Fatalf("%s\ngot %v and error %v, want a malformed one", tc.reason, record, err)
			}
			if delta := cmp.Diff(tc.where, malformed.Where); delta != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, delta)
			}
			if !errors.Is(err, malformed.Err) || !strings.Contains(
				err.Error(), tc.where,
			) || !strings.Contains(err.Error(), tc.names) {
				t.Errorf("%s\nthe error %q does not name %q and %q", tc.reason, err, tc.where, tc.names)
			}
		})
	}
}
