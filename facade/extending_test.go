package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// TestRaw shows that Raw returns the undecoded objects of a request as copies.
func TestRaw(t *testing.T) {
	object := body(map[string]any{"size": int64(2), "unknown": []any{"x"}})
	old := body(map[string]any{"unknown": []any{"y"}})
	cases := map[string]struct {
		reason      string
		request     map[string]any
		object, old map[string]any
	}{
		"Creation": {"Raw of a creation has no old object", map[string]any{"object": object}, object, nil},
		"Update": {
			"Raw has unknown fields and no zero values of the Go type",
			map[string]any{"operation": "UPDATE", "object": object, "oldObject": old},
			object, old,
		},
		"Deletion": {
			"Raw of a deletion has only the old object",
			map[string]any{"operation": "DELETE", "object": nil, "oldObject": old}, nil,
			old,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("op.example.org")
			widgets := kopf.For(op, &Widget{})
			for _, id := range []string{"first", "second"} {
				widgets.Validate(id, func(_ context.Context, a *Admission) error {
					object, old := a.Raw()
					for name, one := range map[string]struct {
						got  *kopf.Unstructured
						want map[string]any
					}{"object": {object, tc.object}, "old": {old, tc.old}} {
						if one.got == nil && one.want == nil {
							continue
						}
						if diff := cmp.Diff(one.want, one.got.UnstructuredContent()); diff != "" {
							t.Errorf("%s\nthe %s of the handler %s: -want, +got:\n%s", tc.reason, name, id, diff)
						}
						unstructured.RemoveNestedField(one.got.Object, "spec", "unknown") // changes a copy only
					}
					return nil
				})
			}
			if verdict := verdictOf(t.Context(), t, op, request(tc.request)); !verdict.Allowed {
				t.Errorf("%s\nthe request is allowed: got %+v", tc.reason, verdict.Status)
			}
		})
	}
}

// TestAddError shows that AddError adds an error to those of the set-up.
func TestAddError(t *testing.T) {
	op := kopf.New("op.example.org")
	widgets := kopf.For(op, &Widget{})
	widgets.AddError(nil)
	if _, err := kopf.Plan(op, newScheme(t)); err != nil {
		t.Fatalf("AddError(nil) adds no error: got %v", err)
	}
	widgets.AddError(errors.New("a mistake"))
	_, err := kopf.Plan(op, newScheme(t))
	told := fmt.Sprint(err)
	if !strings.Contains(told, "facade/extending_test.go:") || !strings.Contains(told, ": a mistake") {
		t.Errorf("AddError adds the error with its file and line: got %v", err)
	}
}
