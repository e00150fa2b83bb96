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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
)

// of is what is known of an object without decoding it.
type known struct {
	Name, Namespace, Version string
	UID                      types.UID
	Deleting                 bool
}

func of(o *compact.Object) known {
	return known{o.GetName(), o.GetNamespace(), o.GetResourceVersion(), o.GetUID(), o.Deleting()}
}

func TestObjects(t *testing.T) {
	pod := metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	tests := map[string]struct {
		reason, text string
		typ          metav1.TypeMeta
		known        known
		want         string // the text that is kept
	}{
		"Whole": {
			"all but the managed fields is kept as it is",
			`{"kind":"A","metadata":{"name":"n","managedFields":[{"a":"}"}],"namespace":"s","uid":"u",` +
				`"resourceVersion":"7"},"spec":{"a":1}}`,
			pod, known{"n", "s", "7", "u", false},
			`{"kind":"A","metadata":{"name":"n","namespace":"s","uid":"u","resourceVersion":"7"},"spec":{"a":1}}`,
		},
		"First": {
			"a comma goes with a member at the beginning", `{"metadata": { "managedFields" : [] , "name":"n"}}`,
			metav1.TypeMeta{}, known{Name: "n"}, `{"metadata": { "name":"n"}}`,
		},
		"Last": {
			"and with one at the end", `{"metadata":{"name":"n" , "managedFields":[] } }`, metav1.TypeMeta{},
			known{Name: "n"}, `{"metadata":{"name":"n" } }`,
		},
		"Alone": {
			"nothing else may be there", `{"metadata":{"managedFields":null}}`, metav1.TypeMeta{}, known{},
			`{"metadata":{}}`,
		},
		"Elsewhere": {
			"users may call their fields so",
			`{"metadata":{"name":"n"},"spec":{"metadata":{"managedFields":1,"name":"x"}}}`, metav1.TypeMeta{},
			known{Name: "n"}, `{"metadata":{"name":"n"},"spec":{"metadata":{"managedFields":1,"name":"x"}}}`,
		},
		"Element": {
			"elements of lists do not say what they are", ` {"metadata":{"managedFields":[],"name":"n"}}`, pod,
			known{Name: "n"}, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"n"}}`,
		},
		"EmptyElement": {"nothing follows the type", ` { } `, pod, known{}, `{"apiVersion":"v1","kind":"Pod" } `},
		"Deleting": {
			"it has a time", `{"metadata":{"name":"n","deletionTimestamp":"2020-01-01T00:00:00Z"}}`, metav1.TypeMeta{},
			known{Name: "n", Deleting: true}, `{"metadata":{"name":"n","deletionTimestamp":"2020-01-01T00:00:00Z"}}`,
		},
		"NotDeleting": {
			"a null is none", `{"metadata":{"name":"n","deletionTimestamp":null}}`, metav1.TypeMeta{}, known{Name: "n"},
			`{"metadata":{"name":"n","deletionTimestamp":null}}`,
		},
		"Escapes": {
			"a name is what it means", `{"metadata":{"name":"\u006e","namespace":"\"s","uid":5}}`, metav1.TypeMeta{},
			known{Name: "n", Namespace: `"s`}, `{"metadata":{"name":"\u006e","namespace":"\"s","uid":5}}`,
		},
		"NoMetadata": {"nobody asks for them", `{"spec":{}}`, metav1.TypeMeta{}, known{}, `{"spec":{}}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			text := []byte(tc.text)
			o, err := compact.New(text, tc.typ)
			if err != nil {
				t.Fatal(err)
			}
			clear(text) // it is the caller's again
			if d := cmp.Diff(tc.known, of(o)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
			kept, err := o.Text()
			if string(kept) != tc.want || err != nil {
				t.Errorf("%s: %v, kept is\n%s, want\n%s", tc.reason, err, kept, tc.want)
			}
			trimmed, err := compact.Trim([]byte(tc.text), nil)
			if tc.typ.Kind == "" && (err != nil || string(trimmed.Text()) != tc.want) {
				t.Errorf("%s: %v, trimmed it is\n%s, want\n%s", tc.reason, err, trimmed.Text(), tc.want)
			}
			found := o.GetObjectMeta()
			if found.GetName() != tc.known.Name || found.GetNamespace() != tc.known.Namespace ||
				found.GetResourceVersion() != tc.known.Version || found.GetUID() != tc.known.UID {
				t.Errorf("%s: client-go finds %v", tc.reason, found)
			}
		})
	}
}

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

func TestMalformedObjects(t *testing.T) {
	for _, text := range []string{
		``, `[]`, `"x"`, `{`, `{"metadata":`, `{"metadata":{"name":"n"}`, `{"metadata":{"name":"n}}`, `{"metadata":[]}`,
		`{"metadata":{"name"}}`, `{"a":}`, `{"a" 1}`, `null`,
	} {
		if _, err := compact.New([]byte(text), metav1.TypeMeta{}); err == nil {
			t.Errorf("%s is an object", text)
		}
		if _, err := compact.Trim([]byte(text), nil); err == nil {
			t.Errorf("%s is an object", text)
		}
	}
	if _, err := compact.Of(map[string]any{"a": func() {}}); err == nil {
		t.Error("a function has no JSON form")
	}
}

// What is not well-formed inside is the matter of whoever decodes it, and names the object.
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

func TestBodiesAreOnesOwn(t *testing.T) {
	want := map[string]any{"metadata": map[string]any{"name": "n"}, "spec": map[string]any{"a": int64(1)}}
	o, err := compact.Of(want)
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
		t.Error("what never changes needs no copy")
	}
}

// FuzzObjects keeps of any object what a decoder finds in it, but for the managed fields.
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
			return // it must not panic
		}
		metadata, is := want["metadata"].(map[string]any)
		if raw, there := want["metadata"]; err != nil && (!there || is) {
			t.Fatalf("%s: %v, %v", text, raw, err)
		}
		if err != nil || bytes.ContainsRune(text, '\\') || twice(text) {
			return // keys with escapes are others here, and of several of one key the last one counts
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

// twice tells whether a key may be there twice.
func twice(text []byte) bool {
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
