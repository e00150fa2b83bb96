package diffbase_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

func objectWithAnnotations(annotations object) object {
	return object{"metadata": object{"annotations": annotations}}
}

func TestFetchMalformed(t *testing.T) {
	inStatus := func(value any) object {
		return object{"status": object{"kopf": object{"last-handled-configuration": value}}}
	}
	cases := map[string]struct {
		reason  string
		storage diffbase.Storage
		body    object
		where   string
	}{
		"Cut": {
			reason:  "an incomplete essence is an error",
			storage: diffbase.Annotations{},
			body:    objectWithAnnotations(object{"kopf.zalando.org/last-handled-configuration": `{"spec":`}),
			where:   "annotation kopf.zalando.org/last-handled-configuration",
		},
		"List": {
			reason:  "a list is an error, on which Kopf fails later",
			storage: diffbase.Annotations{Prefix: "example.org", Key: "seen"},
			body:    objectWithAnnotations(object{"example.org/seen": `[]`}),
			where:   "annotation example.org/seen",
		},
		"NotFirst": {
			reason:  "a malformed essence is an error even if another storage has a valid one",
			storage: diffbase.Multi{diffbase.Status{}, diffbase.Annotations{}},
			body: object{
				"metadata": object{"annotations": object{"kopf.zalando.org/last-handled-configuration": `{}`}},
				"status":   object{"kopf": object{"last-handled-configuration": ""}},
			},
			where: "field status.kopf.last-handled-configuration",
		},
		"Native": {
			reason:  "an object in place of a text in the status is an error",
			storage: diffbase.Status{},
			body:    inStatus(object{"spec": object{}}),
			where:   "field status.kopf.last-handled-configuration",
		},
		"CustomField": {
			reason:  "the error names a custom field",
			storage: diffbase.Status{Field: diff.Path{"status", "x.y"}},
			body:    object{"status": object{"x.y": true}},
			where:   "field status.x.y",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			essence, err := tc.storage.Fetch(tc.body)
			var malformed *diffbase.MalformedError
			if !errors.As(err, &malformed) {
				t.Fatalf("%s\ngot %v and error %v, want a malformed one", tc.reason, essence, err)
			}
			if delta := cmp.Diff(tc.where, malformed.Where); delta != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, delta)
			}
			if !errors.Is(err, malformed.Err) || !strings.Contains(err.Error(), tc.where) {
				t.Errorf("the error %q does not name %q because of %q", err, tc.where, malformed.Err)
			}
		})
	}
}

// TestFetchFromBrokenObject shows that malformed metadata is not a MalformedError: the record could not be removed
// either.
func TestFetchFromBrokenObject(t *testing.T) {
	_, err := diffbase.Annotations{}.Fetch(object{"metadata": "x"})
	var malformed *diffbase.MalformedError
	if err == nil || errors.As(err, &malformed) {
		t.Errorf("want an error other than MalformedError, got %v", err)
	}
}

func TestStoreErrors(t *testing.T) {
	unencodable := diffbase.Essence{"spec": object{"ratio": math.NaN()}}
	cases := map[string]struct {
		reason  string
		storage diffbase.Storage
		patch   object
		essence diffbase.Essence
		names   string
	}{
		"NoEssence": {
			reason: "storing a nil essence is an error", storage: diffbase.Annotations{}, patch: object{},
			names: "no essence",
		},
		"NoEssenceInStatus": {
			reason:  "storing a nil essence in the status is an error",
			storage: diffbase.Status{}, patch: object{}, names: "no essence",
		},
		"Unencodable": {
			reason:  "an essence that is not JSON is an error",
			storage: diffbase.Annotations{}, patch: object{}, essence: unencodable,
			names: "spec: ratio",
		},
		"UnencodableOfMany": {
			reason:  "an essence that is not JSON is an error of several storages, too",
			storage: diffbase.Multi{diffbase.Status{}}, patch: object{},
			essence: unencodable, names: "spec: ratio",
		},
		"NoPlace": {
			reason: "a patch that removes all annotations is an error", storage: diffbase.Annotations{},
			patch: object{"metadata": object{"annotations": nil}}, essence: diffbase.Essence{}, names: "annotations",
		},
		"NoPlaceInStatus": {
			reason:  "a patch that replaces the status is an error",
			storage: diffbase.Status{}, patch: object{"status": "x"},
			essence: diffbase.Essence{}, names: "status",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			vectors.Unchanged(t, tc.patch)
			err := tc.storage.Store(tc.patch, object{}, tc.essence)
			if err == nil || !strings.Contains(err.Error(), tc.names) {
				t.Errorf("%s\ngot error %v, want one that names %q", tc.reason, err, tc.names)
			}
		})
	}
}

// TestStoredIsFetched shows that a stored essence is fetched unchanged, and that the stored copy is not a part of the
// next essence.
func TestStoredIsFetched(t *testing.T) {
	long := strings.Repeat("k", 70)
	storages := map[string]diffbase.Storage{
		"Default":   diffbase.Annotations{},
		"Prefixed":  diffbase.Annotations{Prefix: "example.org"},
		"LongKey":   diffbase.Annotations{Prefix: "example.org", Key: long},
		"WithoutV1": diffbase.Annotations{Prefix: "example.org", Key: long, WithoutV1: true},
		"Status":    diffbase.Status{},
		"Named":     diffbase.Status{Name: "my.op"},
		"Field":     diffbase.Status{Field: diff.Path{"status", "a.b", "c"}},
		"Multi":     diffbase.Multi{diffbase.Status{}, diffbase.Annotations{Prefix: "example.org"}},
	}
	body := object{
		"kind":     "ReplicaSet",
		"metadata": object{"ownerReferences": []any{object{"kind": "Deployment"}}, "labels": object{"a": "ü<&>😀"}},
		"spec": object{
			"whole": 1.0, "large": 1152921504606846976.0, "huge": int64(
				math.MaxInt64,
			), "small": 1e-7, "null": nil, "list": []any{object{}},
		},
	}
	for name, storage := range storages {
		t.Run(name, func(t *testing.T) {
			essence, err := storage.Build(body, nil)
			if err != nil {
				t.Fatalf("cannot build: %v", err)
			}
			vectors.Unchanged(t, body)
			vectors.Unchanged(t, essence)
			patch := object{}
			if err := storage.Store(patch, body, essence); err != nil {
				t.Fatalf("cannot store: %v", err)
			}
			stored := mergePatched(body, patch)
			fetched, err := storage.Fetch(stored)
			if delta := cmp.Diff(essence, fetched); delta != "" || err != nil {
				t.Errorf("got error %v; -built, +fetched:\n%s", err, delta)
			}
			again, err := storage.Build(stored, nil)
			if delta := cmp.Diff(essence, again); delta != "" || err != nil {
				t.Errorf("got error %v; -built, +built again:\n%s", err, delta)
			}
		})
	}
}

// mergePatched returns the object after the merge-patch, which only adds mappings and values.
func mergePatched(body, patch object) object {
	result := object{}
	for key, value := range body {
		result[key] = value
	}
	for key, value := range patch {
		if inner, ok := value.(object); ok {
			value = mergePatched(asObject(body[key]), inner)
		}
		result[key] = value
	}
	return result
}

func asObject(value any) object {
	mapping, _ := value.(object)
	return mapping
}
