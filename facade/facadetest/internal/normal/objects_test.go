package normal_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/internal/normal"
)

const (
	owner    = "00000000-0000-4000-8000-000000000001"
	stranger = "00000000-0000-4000-8000-000000000099"
)

func object(kind, name string, more map[string]any) map[string]any {
	metadata := map[string]any{"namespace": "shop", "name": name}
	o := map[string]any{"apiVersion": "example.org/v1", "kind": kind, "metadata": metadata}
	for key, value := range more {
		switch key {
		case "spec", "status", "data":
			o[key] = value
		default:
			metadata[key] = value
		}
	}
	return o
}

func TestObject(t *testing.T) {
	cases := map[string]struct {
		reason      string
		given, want map[string]any
	}{
		"Empty": {
			reason: "an object without metadata is no reason to fall over", given: map[string]any{"kind": "Status"},
			want: map[string]any{"kind": "Status"},
		},
		"Versions": {
			reason: "the server counts on, however the run goes",
			given: object("Database", "orders", map[string]any{
				"uid": owner, "resourceVersion": "105", "generation": int64(2), "managedFields": []any{"x"},
				"creationTimestamp": "2026-01-02T03:04:05Z", "labels": map[string]any{"a": "b"},
			}),
			want: object("Database", "orders", map[string]any{"labels": map[string]any{"a": "b"}}),
		},
		"Deleted": {
			reason: "that an object is being deleted remains to be seen",
			given:  object("Database", "orders", map[string]any{"deletionTimestamp": "2026-01-02T03:04:05Z"}),
			want:   object("Database", "orders", map[string]any{"deletionTimestamp": "<time>"}),
		},
		"UIDs": {
			reason: "whose uid it is remains to be seen, in texts and in keys, too",
			given: object("Pod", "one", map[string]any{
				"ownerReferences": []any{map[string]any{"name": "orders", "uid": owner}},
				"annotations":     map[string]any{"of": `{"uid":"` + stranger + `"}`, "by-" + owner: ""},
			}),
			want: object("Pod", "one", map[string]any{
				"ownerReferences": []any{map[string]any{"name": "orders", "uid": "<uid of Database shop/orders>"}},
				"annotations": map[string]any{
					"of": `{"uid":"<uid>"}`, "by-<uid of Database shop/orders>": "",
				},
			}),
		},
		"Times": {
			reason: "times are in records as well, with fractions and zones; what only looks like one stays",
			given: object("Database", "orders", map[string]any{"status": map[string]any{
				"at": `{"started":"2026-01-02T03:04:05.000123+00:00"}`, "day": "2026-01-02", "n": int64(3), "none": nil,
			}}),
			want: object("Database", "orders", map[string]any{"status": map[string]any{
				"at": `{"started":"<time>"}`, "day": "2026-01-02", "n": int64(3), "none": nil,
			}}),
		},
		"Observed": {
			reason: "how often the object was changed is no matter, whether the status is of the last change is",
			given: object("Database", "orders", map[string]any{
				"generation": int64(3),
				"status": map[string]any{
					"observedGeneration": int64(3),
					"conditions":         []any{map[string]any{"observedGeneration": int64(2)}},
				},
			}),
			want: object("Database", "orders", map[string]any{"status": map[string]any{
				"observedGeneration": "<the current one>",
				"conditions":         []any{map[string]any{"observedGeneration": "<an earlier one>"}},
			}}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			names := normal.Of([]map[string]any{object("Database", "orders", map[string]any{"uid": owner})})
			if diff := cmp.Diff(tc.want, names.Object(tc.given)); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestObjectChangesNothing(t *testing.T) {
	given := object("Database", "orders", map[string]any{"uid": owner, "spec": map[string]any{"of": owner}})
	want := object("Database", "orders", map[string]any{"uid": owner, "spec": map[string]any{"of": owner}})
	normal.Of([]map[string]any{given}).Object(given)
	if diff := cmp.Diff(want, given); diff != "" {
		t.Errorf("the object was changed (-want, +got):\n%s", diff)
	}
}
