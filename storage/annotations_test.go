package storage_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

func annotated(annotations any) object {
	return object{"metadata": object{"annotations": annotations}}
}

func TestAnnotations(t *testing.T) {
	cases := map[string]struct {
		reason string
		body   object
		want   object
		fails  bool
	}{
		"NullMetadata":    {reason: "It is not an object of Kubernetes.", body: object{"metadata": nil}, fails: true},
		"TextMetadata":    {reason: "It is not an object of Kubernetes.", body: object{"metadata": "x"}, fails: true},
		"TextAnnotations": {reason: "It is not an object of Kubernetes.", body: annotated("x"), fails: true},
		"ListAnnotations": {reason: "It is not an object of Kubernetes.", body: annotated([]any{}), fails: true},
		"NoMetadata":      {reason: "Essences have none if they can.", body: object{}},
		"NoAnnotations":   {reason: "Most objects have none.", body: object{"metadata": object{}}},
		"Null":            {reason: "It is how Go writes none.", body: annotated(nil)},
		"Some": {
			reason: "They are returned as they are.", body: annotated(object{"a": "b"}), want: object{"a": "b"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := storage.Annotations(tc.body)
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
			reason: "The patch removes all annotations.",
			patch:  annotated(nil),
			names:  []string{"x/a", "x/b"},
			value:  "1",
			want:   annotated(nil),
			fails:  true,
		},
		"NoNames": {reason: "Nothing is to be written.", patch: object{}, value: "1", want: object{}},
		"Names": {
			reason: "All names get it.", patch: object{}, names: []string{"x/a", "x/b"}, value: "1",
			want: annotated(object{"x/a": "1", "x/b": "1"}),
		},
		"Removal": {
			reason: "A null removes.", patch: annotated(object{"y": "2"}), names: []string{"x/a"},
			want: annotated(object{"x/a": nil, "y": "2"}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := storage.Annotate(tc.patch, tc.names, tc.value)
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
			reason: "The patch is of no use.", patch: object{"metadata": "x"}, want: object{"metadata": "x"},
			fails: true,
		},
		"InBody": {
			reason: "It is there, with whatever value.", patch: object{}, body: annotated(object{"m": nil}),
			want: object{},
		},
		"InPatch": {
			reason: "It will be there, or somebody insists that it will not.", patch: annotated(object{"m": nil}),
			want: annotated(object{"m": nil}),
		},
		"MalformedOne": {
			reason: "What cannot be read has no marks.", patch: object{}, body: object{"metadata": "x"},
			want: annotated(object{"m": "yes"}),
		},
		"Nowhere": {
			reason: "It is missing.", patch: object{}, body: annotated(object{"n": "1"}),
			want: annotated(object{"m": "yes"}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			vectors.Unchanged(t, tc.body)
			err := storage.AnnotateOnce(tc.patch, tc.body, "m", "yes")
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
		"Short": {reason: "There is nothing to leave out.", text: "x", want: "x"},
		"Full":  {reason: "An ellipsis would only make it longer.", text: full, want: full},
		"Long":  {reason: "Messages are read by people.", text: full + "y", want: full + "…"},
		"Cut":   {reason: "Half a character is no text.", text: full[1:] + "ü", want: full[1:] + "…"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := storage.Excerpt(tc.text); got != tc.want {
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
		"NotText": {reason: "A native object in place of text is not what was written.", value: object{}, fails: true},
		"Number":  {reason: "Neither is a number.", value: int64(1), fails: true},
		"Empty":   {reason: "Somebody wiped it out: that is not the same as removing it.", value: "", fails: true},
		"Cut":     {reason: "It is not JSON.", value: `{"a":`, fails: true},
		"Two":     {reason: "It is more than JSON.", value: `{} {}`, fails: true},
		// Deviation D-nan.
		"NaN": {
			reason: "Kopf reads it, but objects of Kubernetes cannot have it.", value: `{"a":NaN}`, fails: true,
		},
		"List":   {reason: "It is not an object.", value: `[]`, fails: true},
		"Text":   {reason: "It is not an object.", value: `"x"`, fails: true},
		"Absent": {reason: "There is nothing to parse."},
		"Null":   {reason: "It is as good as absent.", value: " null "},
		"Object": {
			reason: "Spaces and newlines around do not matter.", value: " {\"a\": {}}\n", want: object{"a": object{}},
		},
		"Nothing": {reason: "An empty object is one.", value: "{}", want: object{}},
		"Numbers": {
			reason: "Numbers are as in objects of Kubernetes.", value: `{"a":1,"b":1.0,"c":9223372036854775807}`,
			want: object{"a": int64(1), "b": 1.0, "c": int64(9223372036854775807)},
		},
		"Repeated": {reason: "The last one counts.", value: `{"a":1,"a":2}`, want: object{"a": int64(2)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := storage.Parse(tc.value)
			if (err != nil) != tc.fails {
				t.Fatalf("%s\ngot error %v, want one: %v", tc.reason, err, tc.fails)
			}
			if delta := cmp.Diff(tc.want, got); delta != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}
