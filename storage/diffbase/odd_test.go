package diffbase_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// What makes Kopf fail by an accident is no reason to block an object.
func TestOddObjects(t *testing.T) {
	const stored = `{"spec":{"a":1}}`
	memory := object{"kopf.zalando.org/last-handled-configuration": stored}
	for name, tc := range map[string]struct {
		reason         string
		body           object
		extra          []diff.Path
		essence, known object
	}{
		"NullAnnotations": {
			reason:  "a null is as good as none",
			body:    object{"metadata": object{"annotations": nil}, "spec": object{}},
			essence: object{"spec": object{}},
		},
		"ScalarStatus": {
			reason:  "who tracks it gets it as it is",
			body:    object{"status": "text"},
			extra:   []diff.Path{{"status"}},
			essence: object{"status": "text"},
		},
		"OwnerWithoutKind": {
			reason: "it is no deployment, so nothing is marked as of one",
			body: object{
				"kind":     "ReplicaSet",
				"metadata": object{"ownerReferences": []any{object{"uid": "x"}}, "annotations": memory},
			},
			essence: object{}, known: object{"spec": object{"a": int64(1)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			vectors.Unchanged(t, tc.body)
			essence, err := diffbase.Annotations{}.Build(tc.body, tc.extra)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if delta := cmp.Diff(tc.essence, essence); delta != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, delta)
			}
			known, err := diffbase.Annotations{}.Fetch(tc.body)
			if delta := cmp.Diff(tc.known, known); err != nil || delta != "" {
				t.Errorf("%s: error %v, -want, +got:\n%s", tc.reason, err, delta)
			}
		})
	}
}

func TestStoredThatIsNoObject(t *testing.T) {
	for _, text := range []string{`[1,2]`, `false`, `""`, `5`, `{"a":NaN}`, ``} {
		body := object{"metadata": object{"annotations": object{"kopf.zalando.org/last-handled-configuration": text}}}
		if essence, err := (diffbase.Annotations{}).Fetch(body); err == nil {
			t.Errorf("%q is no essence, and is told at once: got %v", text, essence)
		}
	}
}
