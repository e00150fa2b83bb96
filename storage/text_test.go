package storage_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage"
)

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
