package diffbase_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

type object = map[string]any

func pathsOf(specs ...string) []diff.Path {
	var paths []diff.Path
	for _, spec := range specs {
		paths = append(paths, diff.ParsePath(spec))
	}
	return paths
}

func TestBuildErrors(t *testing.T) {
	cases := map[string]struct {
		reason  string
		storage diffbase.Storage
		body    object
		extra   []diff.Path
		names   string
	}{
		"NullMetadata": {
			reason:  "null metadata is an error",
			storage: diffbase.Annotations{},
			body:    object{"metadata": nil},
			names:   "metadata",
		},
		"ListAnnotations": {
			reason:  "annotations that are a list are an error",
			storage: diffbase.Status{},
			body:    object{"metadata": object{"annotations": []any{}}},
			names:   "annotations",
		},
		"ExtraRoot": {
			reason:  "the root as an extra field is an error",
			storage: diffbase.Annotations{},
			extra:   []diff.Path{nil},
			names:   "as a whole",
		},
		"ExtraInsideList": {
			reason:  "an extra field inside a list is an error",
			storage: diffbase.Annotations{},
			body:    object{"spec": object{"items": []any{}}},
			extra:   pathsOf("spec.items.0"),
			names:   "spec.items",
		},
		"ExtraInsideNullOfStatus": {
			reason:  "an extra field inside a null is an error",
			storage: diffbase.Multi{diffbase.Annotations{}},
			body:    object{"status": object{"phase": nil}},
			extra:   pathsOf("status.phase.name"),
			names:   "status.phase",
		},
		"IgnoredRoot": {
			reason:  "ignoring the whole object is an error",
			storage: diffbase.Annotations{IgnoredFields: []diff.Path{{}}},
			names:   "as a whole",
		},
		"IgnoredRootOfStatus": {
			reason:  "ignoring the whole object is an error in each storage",
			storage: diffbase.Multi{diffbase.Status{IgnoredFields: []diff.Path{nil}}},
			names:   "as a whole",
		},
		"OwnFieldInsideScalar": {
			reason:  "a text in place of the operator's own status is an error",
			storage: diffbase.Status{},
			body:    object{"status": object{"kopf": "text"}},
			extra:   pathsOf("status"),
			names:   "kopf",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			vectors.Unchanged(t, tc.body)
			essence, err := tc.storage.Build(tc.body, tc.extra)
			if err == nil || !strings.Contains(err.Error(), tc.names) {
				t.Fatalf("%s\ngot %v and error %v, want one that names %q", tc.reason, essence, err, tc.names)
			}
			if essence != nil {
				t.Errorf("%s\ngot %v besides the error", tc.reason, essence)
			}
		})
	}
}

func TestBuild(t *testing.T) {
	everything := object{
		"apiVersion": "example.org/v1", "kind": "Database",
		"metadata": object{
			"name": "db", "uid": "1", "resourceVersion": "2", "labels": object{"tier": "prod"},
			"annotations": object{
				"note": "by hand", "example.org/last-handled-configuration": "{}", "example.org/handled-uid": "1",
				"example.org/kopf-managed": "yes", "kubectl.kubernetes.io/last-applied-configuration": "{}",
			},
		},
		"spec":   object{"size": int64(3), "tuning": object{"cache": "1Gi"}},
		"status": object{"phase": "Ready", "conditions": []any{object{"type": "Up"}}},
	}
	cases := map[string]struct {
		reason  string
		storage diffbase.Storage
		body    object
		extra   []diff.Path
		want    diffbase.Essence
	}{
		"Nothing": {
			reason:  "an essence is never nil, as nil means that the object was never handled",
			storage: diffbase.Multi(nil),
			want:    diffbase.Essence{},
		},
		// Deviation D-null-metadata.
		"NullAnnotations": {
			reason:  "null labels and annotations count as absent",
			storage: diffbase.Annotations{},
			body:    object{"metadata": object{"labels": nil, "annotations": nil}},
			want:    diffbase.Essence{},
		},
		"Everything": {
			reason:  "fields that the system and operators write are left out",
			storage: diffbase.Annotations{Prefix: "example.org"},
			body:    everything,
			want: diffbase.Essence{
				"metadata": object{"labels": object{"tier": "prod"}, "annotations": object{"note": "by hand"}},
				"spec":     object{"size": int64(3), "tuning": object{"cache": "1Gi"}},
			},
		},
		"ExtraFields": {
			reason:  "exactly the extra fields are added",
			storage: diffbase.Annotations{Prefix: "example.org"},
			body:    everything,
			extra: pathsOf(
				"status.phase", "status.conditions", "spec.size", "metadata.name", "kind", "status.absent.at.all",
			),
			want: diffbase.Essence{
				"kind": "Database",
				"metadata": object{
					"name": "db", "labels": object{"tier": "prod"}, "annotations": object{"note": "by hand"},
				},
				"spec":   object{"size": int64(3), "tuning": object{"cache": "1Gi"}},
				"status": object{"phase": "Ready", "conditions": []any{object{"type": "Up"}}},
			},
		},
		"IgnoredFields": {
			reason: "ignored fields are removed last, with mappings that become empty; missing ones are skipped",
			storage: diffbase.Status{
				IgnoredFields: pathsOf("spec.tuning.cache", "metadata.labels.tier", "spec.size.unit", "status.phase"),
			},
			body:  everything,
			extra: pathsOf("status.phase"),
			want: diffbase.Essence{
				"metadata": object{"annotations": object{"note": "by hand"}},
				"spec":     object{"size": int64(3)},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			vectors.Unchanged(t, tc.body)
			got, err := tc.storage.Build(tc.body, tc.extra)
			if err != nil {
				t.Fatalf("%s\ncannot build: %v", tc.reason, err)
			}
			if delta := cmp.Diff(tc.want, got); delta != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}

// TestBuildSharesWhatItKeeps shows that an essence shares its values with the object. Objects are large, and essences
// are built for each event.
func TestBuildSharesWhatItKeeps(t *testing.T) {
	spec := object{"size": int64(3)}
	body := object{"metadata": object{"annotations": object{"note": "by hand"}}, "spec": spec}
	essence, err := diffbase.Annotations{}.Build(body, nil)
	if err != nil {
		t.Fatalf("cannot build: %v", err)
	}
	spec["size"] = int64(4)
	want := diffbase.Essence{
		"metadata": object{"annotations": object{"note": "by hand"}}, "spec": object{"size": int64(4)},
	}
	if delta := cmp.Diff(want, essence); delta != "" {
		t.Errorf("the essence must share the spec, -want, +got:\n%s", delta)
	}
}
