package diffbase_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// TestOddObjects shows that objects on which Kopf fails by accident do not block the operator.
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
			reason:  "null annotations count as absent",
			body:    object{"metadata": object{"annotations": nil}, "spec": object{}},
			essence: object{"spec": object{}},
		},
		"ScalarStatus": {
			reason:  "a status that is a text is returned if it is tracked",
			body:    object{"status": "text"},
			extra:   []diff.Path{{"status"}},
			essence: object{"status": "text"},
		},
		// Deviation D-owner-kind.
		"OwnerWithoutKind": {
			reason: "an owner without a kind is not a Deployment, so the annotation is read",
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

func TestStoredNonObjects(t *testing.T) {
	for _, text := range []string{`[1,2]`, `false`, `""`, `5`, `{"a":NaN}`, ``} {
		body := object{"metadata": object{"annotations": object{"kopf.zalando.org/last-handled-configuration": text}}}
		if essence, err := (diffbase.Annotations{}).Fetch(body); err == nil {
			t.Errorf("%q is not an essence and must be an error, got %v", text, essence)
		}
	}
}

// FuzzFetch reads any text of an annotation. The result is an error, absent, or an essence. A stored essence must be
// read as an equal one: otherwise, the object would be updated forever.
func FuzzFetch(f *testing.F) {
	for _, seed := range []string{
		"", "null", "{}\n", `{"spec":{"a":[1,-2.5,1e21,1.0,null,true,""]}}`, `{"spec":`, `[]`, `5`, `{"a":1e999}`,
		`{"a":123456789012345678901234567890,"b":-0,"c":-0.0,"d":"\ud800\u2028ü"}`, "\xef\xbb\xbf{}", `{"a":1}{"a":2}`,
	} {
		f.Add(seed)
	}
	const key = "kopf.zalando.org/last-handled-configuration"
	f.Fuzz(func(t *testing.T, text string) {
		fetched, err := diffbase.Annotations{}.Fetch(objectWithAnnotations(object{key: text}))
		var malformed *diffbase.MalformedError
		if err != nil && !errors.As(err, &malformed) {
			t.Fatalf("got error %v, want a malformed one", err)
		}
		if err != nil || fetched == nil {
			return
		}
		patch := object{}
		if err := (diffbase.Annotations{}).Store(patch, object{}, fetched); err != nil {
			t.Fatalf("cannot store %v: %v", fetched, err)
		}
		again, err := diffbase.Annotations{}.Fetch(patch)
		if err != nil || !diff.Equal(fetched, again) {
			t.Fatalf("stored %v, fetched %v with error %v", fetched, again, err)
		}
		second := object{}
		if err := (diffbase.Annotations{}).Store(second, object{}, again); err != nil || !diff.Equal(patch, second) {
			t.Errorf("stored %v the first time, %v the second, with error %v", patch, second, err)
		}
	})
}
