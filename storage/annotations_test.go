package storage_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

func objectWithAnnotations(annotations any) object {
	return object{"metadata": object{"annotations": annotations}}
}

func TestAnnotations(t *testing.T) {
	cases := map[string]struct {
		reason string
		body   object
		want   object
		fails  bool
	}{
		"NullMetadata": {reason: "null metadata is an error", body: object{"metadata": nil}, fails: true},
		"TextMetadata": {reason: "metadata that is a text is an error", body: object{"metadata": "x"}, fails: true},
		"TextAnnotations": {reason: "annotations that are a text are an error", body: objectWithAnnotations("x"),
			fails: true},
		"ListAnnotations": {reason: "annotations that are a list are an error", body: objectWithAnnotations([]any{}),
			fails: true},
		"NoMetadata": {reason: "an object without metadata, such as an essence, has no annotations and no error",
			body: object{}},
		"NoAnnotations": {reason: "an object without annotations is valid", body: object{"metadata": object{}}},
		"Null":          {reason: "null annotations count as absent", body: objectWithAnnotations(nil)},
		"Some": {
			reason: "annotations are returned as they are", body: objectWithAnnotations(object{"a": "b"}),
			want: object{"a": "b"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := storage.AnnotationsOf(tc.body)
			if (err != nil) != tc.fails {
				t.Fatalf("%s\ngot error %v, want one: %v", tc.reason, err, tc.fails)
			}
			if delta := cmp.Diff(tc.want, got); delta != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}

func TestAnnotate(t *testing.T) {
	cases := map[string]struct {
		reason string
		patch  object
		names  []string
		value  any
		want   object
		fails  bool
	}{
		"NoPlace": {
			reason: "a patch that removes all annotations is an error",
			patch:  objectWithAnnotations(nil),
			names:  []string{"x/a", "x/b"},
			value:  "1",
			want:   objectWithAnnotations(nil),
			fails:  true,
		},
		"NoNames": {reason: "no names leave the patch unchanged", patch: object{}, value: "1", want: object{}},
		"Names": {
			reason: "each name gets the value", patch: object{}, names: []string{"x/a", "x/b"}, value: "1",
			want: objectWithAnnotations(object{"x/a": "1", "x/b": "1"}),
		},
		"Removal": {
			reason: "a null value removes the annotation", patch: objectWithAnnotations(object{"y": "2"}),
			names: []string{"x/a"},
			want:  objectWithAnnotations(object{"x/a": nil, "y": "2"}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := storage.SetAnnotations(tc.patch, tc.names, tc.value)
			if (err != nil) != tc.fails {
				t.Fatalf("%s\ngot error %v, want one: %v", tc.reason, err, tc.fails)
			}
			if delta := cmp.Diff(tc.want, tc.patch); delta != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}

func TestAnnotateOnce(t *testing.T) {
	cases := map[string]struct {
		reason      string
		patch, body object
		want        object
		fails       bool
	}{
		"NoPlace": {
			reason: "a patch with malformed metadata is an error",
			patch:  object{"metadata": "x"}, want: object{"metadata": "x"},
			fails: true,
		},
		"InBody": {
			reason: "an annotation of the object is not written again, even if it is null",
			patch:  object{}, body: objectWithAnnotations(object{"m": nil}),
			want: object{},
		},
		"InPatch": {
			reason: "an annotation of the patch is not overwritten, even if it is null",
			patch:  objectWithAnnotations(object{"m": nil}),
			want:   objectWithAnnotations(object{"m": nil}),
		},
		"MalformedOne": {
			reason: "an object with malformed metadata gets the annotation",
			patch:  object{}, body: object{"metadata": "x"},
			want: objectWithAnnotations(object{"m": "yes"}),
		},
		"Nowhere": {
			reason: "a missing annotation is added", patch: object{}, body: objectWithAnnotations(object{"n": "1"}),
			want: objectWithAnnotations(object{"m": "yes"}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			vectors.Unchanged(t, tc.body)
			err := storage.SetAnnotationOnce(tc.patch, tc.body, "m", "yes")
			if (err != nil) != tc.fails {
				t.Fatalf("%s\ngot error %v, want one: %v", tc.reason, err, tc.fails)
			}
			if delta := cmp.Diff(tc.want, tc.patch); delta != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}

func TestExcerpt(t *testing.T) {
	full := strings.Repeat("x", 256)
	cases := map[string]struct{ reason, text, want string }{
		"Short": {reason: "a short text is returned unchanged", text: "x", want: "x"},
		"Full":  {reason: "a text of exactly the limit does not get an ellipsis", text: full, want: full},
		"Long":  {reason: "a long text is cut and gets an ellipsis", text: full + "y", want: full + "…"},
		"Cut":   {reason: "a character is never cut in two", text: full[1:] + "ü", want: full[1:] + "…"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := storage.TextExcerpt(tc.text); got != tc.want {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason string
		value  any
		want   object
		fails  bool
	}{
		"NotText": {reason: "an object in place of its text is an error", value: object{}, fails: true},
		"Number":  {reason: "a number in place of a text is an error", value: int64(1), fails: true},
		"Empty":   {reason: "an empty text is an error, unlike an absent one", value: "", fails: true},
		"Cut":     {reason: "incomplete JSON is an error", value: `{"a":`, fails: true},
		"Two":     {reason: "two JSON values are an error", value: `{} {}`, fails: true},
		// Deviation D-nan.
		"NaN": {
			reason: "a NaN is an error, unlike in Kopf, as Kubernetes objects cannot hold it",
			value:  `{"a":NaN}`, fails: true,
		},
		"List":   {reason: "a list is an error", value: `[]`, fails: true},
		"Text":   {reason: "a JSON text is an error", value: `"x"`, fails: true},
		"Absent": {reason: "an absent value gives no object and no error"},
		"Null":   {reason: "a JSON null counts as absent", value: " null "},
		"Object": {
			reason: "white space around the object is ignored", value: " {\"a\": {}}\n", want: object{"a": object{}},
		},
		"Nothing": {reason: "an empty object is an object", value: "{}", want: object{}},
		"Numbers": {
			reason: "integers and fractions keep their types", value: `{"a":1,"b":1.0,"c":9223372036854775807}`,
			want: object{"a": int64(1), "b": 1.0, "c": int64(9223372036854775807)},
		},
		"Repeated": {reason: "the last of repeated keys counts", value: `{"a":1,"a":2}`, want: object{"a": int64(2)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := storage.ParseObject(tc.value)
			if (err != nil) != tc.fails {
				t.Fatalf("%s\ngot error %v, want one: %v", tc.reason, err, tc.fails)
			}
			if delta := cmp.Diff(tc.want, got); delta != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}
