package compact_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
)

// expectedMetadata holds the fields that are known without decoding an object.
type expectedMetadata struct {
	Name, Namespace, Version string
	UID                      types.UID
	Deleting                 bool
}

func metadataOf(o *compact.CachedObject) expectedMetadata {
	return expectedMetadata{o.GetName(), o.GetNamespace(), o.GetResourceVersion(), o.GetUID(), o.IsDeleting()}
}

// TestObjects shows which fields of a JSON object are known without decoding it, and that its text is kept except for
// managed fields.
func TestObjects(t *testing.T) {
	pod := metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	tests := map[string]struct {
		reason, text string
		typ          metav1.TypeMeta
		known        expectedMetadata
		want         string // the text that is kept
	}{
		"Whole": {
			"everything but managed fields is kept unchanged",
			`{"kind":"A","metadata":{"name":"n","managedFields":[{"a":"}"}],"namespace":"s","uid":"u",` +
				`"resourceVersion":"7"},"spec":{"a":1}}`,
			pod, expectedMetadata{"n", "s", "7", "u", false},
			`{"kind":"A","metadata":{"name":"n","namespace":"s","uid":"u","resourceVersion":"7"},"spec":{"a":1}}`,
		},
		"First": {
			"managed fields at the beginning are removed with their comma",
			`{"metadata": { "managedFields" : [] , "name":"n"}}`,
			metav1.TypeMeta{}, expectedMetadata{Name: "n"}, `{"metadata": { "name":"n"}}`,
		},
		"Last": {
			"managed fields at the end are removed with their comma",
			`{"metadata":{"name":"n" , "managedFields":[] } }`, metav1.TypeMeta{},
			expectedMetadata{Name: "n"}, `{"metadata":{"name":"n" } }`,
		},
		"Alone": {
			"metadata with managed fields only become empty",
			`{"metadata":{"managedFields":null}}`, metav1.TypeMeta{}, expectedMetadata{},
			`{"metadata":{}}`,
		},
		"Elsewhere": {
			"fields of users with these names are kept",
			`{"metadata":{"name":"n"},"spec":{"metadata":{"managedFields":1,"name":"x"}}}`, metav1.TypeMeta{},
			expectedMetadata{Name: "n"}, `{"metadata":{"name":"n"},"spec":{"metadata":{"managedFields":1,"name":"x"}}}`,
		},
		"Element": {
			"an element of a list gets its type", ` {"metadata":{"managedFields":[],"name":"n"}}`, pod,
			expectedMetadata{Name: "n"}, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"n"}}`,
		},
		"EmptyElement": {"an empty element gets its type without a comma",
			` { } `, pod, expectedMetadata{}, `{"apiVersion":"v1","kind":"Pod" } `},
		"Deleting": {
			"an object with a deletion timestamp is being deleted",
			`{"metadata":{"name":"n","deletionTimestamp":"2020-01-01T00:00:00Z"}}`, metav1.TypeMeta{},
			expectedMetadata{Name: "n", Deleting: true},
			`{"metadata":{"name":"n","deletionTimestamp":"2020-01-01T00:00:00Z"}}`,
		},
		"NotDeleting": {
			"an object with a null as deletion timestamp is not being deleted",
			`{"metadata":{"name":"n","deletionTimestamp":null}}`, metav1.TypeMeta{}, expectedMetadata{Name: "n"},
			`{"metadata":{"name":"n","deletionTimestamp":null}}`,
		},
		"Escapes": {
			"escapes in names are decoded, and values of other types ignored",
			`{"metadata":{"name":"\u006e","namespace":"\"s","uid":5}}`, metav1.TypeMeta{},
			expectedMetadata{Name: "n", Namespace: `"s`}, `{"metadata":{"name":"\u006e","namespace":"\"s","uid":5}}`,
		},
		"NoMetadata": {"an object without metadata is kept", `{"spec":{}}`, metav1.TypeMeta{}, expectedMetadata{},
			`{"spec":{}}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			text := []byte(tc.text)
			o, err := compact.New(text, tc.typ)
			if err != nil {
				t.Fatal(err)
			}
			clear(text) // the caller may reuse it
			if d := cmp.Diff(tc.known, metadataOf(o)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
			kept, err := o.Text()
			if string(kept) != tc.want || err != nil {
				t.Errorf("%s: %v, kept\n%s, want\n%s", tc.reason, err, kept, tc.want)
			}
			trimmed, err := compact.OpenTrimmed([]byte(tc.text))
			if tc.typ.Kind == "" && (err != nil || string(trimmed.Text()) != tc.want) {
				t.Errorf("%s: %v, trimmed\n%s, want\n%s", tc.reason, err, trimmed.Text(), tc.want)
			}
			found := o.GetObjectMeta()
			if found.GetName() != tc.known.Name || found.GetNamespace() != tc.known.Namespace ||
				found.GetResourceVersion() != tc.known.Version || found.GetUID() != tc.known.UID {
				t.Errorf("%s: client-go finds %v", tc.reason, found)
			}
		})
	}
}

// TestEndOfAListing shows that only the annotation of client-go with the value true ends a listing.
func TestEndOfAListing(t *testing.T) {
	const key = metav1.InitialEventsAnnotationKey
	for annotations, want := range map[string]string{
		`{"` + key + `":"true"}`: "true", `{"` + key + `":"false"}`: "", `{"other":"` + key + `"}`: "", `{}`: "",
	} {
		o, err := compact.New([]byte(`{"metadata":{"annotations":`+annotations+`}}`), metav1.TypeMeta{})
		if err != nil {
			t.Fatal(err)
		}
		if got := o.GetObjectMeta().GetAnnotations()[key]; got != want {
			t.Errorf("%s: got %q", annotations, got)
		}
	}
}

// TestMalformedObjects shows that malformed texts, and texts that are not objects, are refused.
func TestMalformedObjects(t *testing.T) {
	for _, text := range []string{
		``, `[]`, `"x"`, `{`, `{"metadata":`, `{"metadata":{"name":"n"}`, `{"metadata":{"name":"n}}`, `{"metadata":[]}`,
		`{"metadata":{"name"}}`, `{"a":}`, `{"a" 1}`, `null`,
	} {
		if _, err := compact.New([]byte(text), metav1.TypeMeta{}); err == nil {
			t.Errorf("%s was accepted as an object", text)
		}
		if _, err := compact.OpenTrimmed([]byte(text)); err == nil {
			t.Errorf("%s was accepted as an object", text)
		}
	}
	if _, err := compact.NewFromBody(map[string]any{"a": func() {}}); err == nil {
		t.Error("a function was encoded")
	}
}

// TestUndecodableObjects shows that a malformed object is accepted, and that decoding it returns an error with the name
// of the object.
func TestUndecodableObjects(t *testing.T) {
	o, err := compact.New([]byte(`{"metadata":{"name":"n","namespace":"s"},"spec":{"a":nul}}`), metav1.TypeMeta{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if body, err := o.Body(); err == nil || !strings.Contains(err.Error(), "s/n") {
			t.Errorf("got %v, %v", body, err)
		}
		if found, err := o.Unstructured(); err == nil {
			t.Errorf("got %v", found)
		}
	}
}

// TestBodiesAreOnesOwn shows that each reader gets its own copy of an object, which may be modified.
func TestBodiesAreOnesOwn(t *testing.T) {
	want := map[string]any{"metadata": map[string]any{"name": "n"}, "spec": map[string]any{"a": int64(1)}}
	o, err := compact.NewFromBody(want)
	if err != nil {
		t.Fatal(err)
	}
	first, err := o.Unstructured()
	if err != nil {
		t.Fatal(err)
	}
	first.SetName("other")
	first.Object["spec"] = nil
	second, err := o.Body()
	if d := cmp.Diff(want, second); d != "" || err != nil {
		t.Errorf("%v: -want, +got:\n%s", err, d)
	}
	if o.DeepCopyObject() != o || o.GetObjectKind() == nil {
		t.Error("an immutable object was copied")
	}
}

// FuzzObjects checks that an object keeps everything that a decoder finds in it, except for managed fields.
func FuzzObjects(f *testing.F) {
	for _, seed := range []string{
		`{"metadata":{"managedFields":[],"name":"n"}}`, `{"metadata":{"name":"n","managedFields":{}},"a":[{}]}`,
		`{"metadata":{"managedFields":1,"managedFields":2}}`, `{"metadata":{"a":1},"metadata":{"name":"\u0041"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		o, err := compact.New(text, metav1.TypeMeta{})
		var want map[string]any
		if kjson.UnmarshalCaseSensitivePreserveInts(text, &want) != nil || want == nil {
			return // only a panic would be wrong
		}
		metadata, is := want["metadata"].(map[string]any)
		if raw, there := want["metadata"]; err != nil && (!there || is) {
			t.Fatalf("%s: %v, %v", text, raw, err)
		}
		if err != nil || bytes.ContainsRune(text, '\\') || mayHaveDuplicateKeys(text) {
			return // keys with escapes are not recognized, and the last of equal keys counts
		}
		delete(metadata, "managedFields")
		got, err := o.Body()
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %v, -want, +got:\n%s", text, err, d)
		}
		if name, is := metadata["name"].(string); is && o.GetName() != name {
			t.Errorf("%s: the name is %q", text, o.GetName())
		}
	})
}

// mayHaveDuplicateKeys reports whether a key may occur twice.
func mayHaveDuplicateKeys(text []byte) bool {
	decoder, met := json.NewDecoder(bytes.NewReader(text)), map[string]bool{}
	for {
		token, err := decoder.Token()
		if err != nil {
			return false
		}
		key := fmt.Sprintf("%T%v", token, token)
		if _, is := token.(string); is && met[key] {
			return true
		}
		met[key] = true
	}
}
