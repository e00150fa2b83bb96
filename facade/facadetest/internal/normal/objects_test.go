package normal_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/internal/normal"
)

const (
	ownerUID   = "00000000-0000-4000-8000-000000000001"
	unknownUID = "00000000-0000-4000-8000-000000000099"
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
			reason: "an object without metadata does not panic", given: map[string]any{"kind": "Status"},
			want: map[string]any{"kind": "Status"},
		},
		"Versions": {
			reason: "uid, versions, times and managedFields are removed",
			given: object("Database", "orders", map[string]any{
				"uid": ownerUID, "resourceVersion": "105", "generation": int64(2), "managedFields": []any{"x"},
				"creationTimestamp": "2026-01-02T03:04:05Z", "labels": map[string]any{"a": "b"},
			}),
			want: object("Database", "orders", map[string]any{"labels": map[string]any{"a": "b"}}),
		},
		"Deleted": {
			reason: "a deletion timestamp is replaced, not removed",
			given:  object("Database", "orders", map[string]any{"deletionTimestamp": "2026-01-02T03:04:05Z"}),
			want:   object("Database", "orders", map[string]any{"deletionTimestamp": "<time>"}),
		},
		"UIDs": {
			reason: "a uid is replaced by its object, in texts and in keys as well",
			given: object("Pod", "one", map[string]any{
				"ownerReferences": []any{map[string]any{"name": "orders", "uid": ownerUID}},
				"annotations":     map[string]any{"of": `{"uid":"` + unknownUID + `"}`, "by-" + ownerUID: ""},
			}),
			want: object("Pod", "one", map[string]any{
				"ownerReferences": []any{map[string]any{"name": "orders", "uid": "<uid of Database shop/orders>"}},
				"annotations": map[string]any{
					"of": `{"uid":"<uid>"}`, "by-<uid of Database shop/orders>": "",
				},
			}),
		},
		"Times": {
			reason: "times are replaced inside of texts as well; a date alone stays",
			given: object("Database", "orders", map[string]any{"status": map[string]any{
				"at": `{"started":"2026-01-02T03:04:05.000123+00:00"}`, "day": "2026-01-02", "n": int64(3), "none": nil,
			}}),
			want: object("Database", "orders", map[string]any{"status": map[string]any{
				"at": `{"started":"<time>"}`, "day": "2026-01-02", "n": int64(3), "none": nil,
			}}),
		},
		"Observed": {
			reason: "observedGeneration becomes the current or an earlier one, without a number",
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
			names := normal.NewNames([]map[string]any{object("Database", "orders", map[string]any{"uid": ownerUID})})
			if diff := cmp.Diff(tc.want, names.NormalizeObject(tc.given)); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestObjectChangesNothing(t *testing.T) {
	given := object("Database", "orders", map[string]any{"uid": ownerUID, "spec": map[string]any{"of": ownerUID}})
	want := object("Database", "orders", map[string]any{"uid": ownerUID, "spec": map[string]any{"of": ownerUID}})
	normal.NewNames([]map[string]any{given}).NormalizeObject(given)
	if diff := cmp.Diff(want, given); diff != "" {
		t.Errorf("Object must not change its argument (-want, +got):\n%s", diff)
	}
}
