package asciijson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"

	"github.com/kopf-runtime/kopf-runtime/internal/asciijson"
)

// FuzzMarshal marshals JSON values. The text must decode to the same value, must mean the same as the text of the
// standard encoder to any decoder, and must be compact and ASCII.
func FuzzMarshal(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,-2.5,1e21,1.0,null,true,""],"b":{"c":{}}}`, `"\u0000\u001f\u007f\"\\/<&>"`, `"ü☃😀\u2028\ud800"`,
		`[9223372036854775807,9223372036854775808,1e-7,-0.0,-0,5e-324,1e308]`, "\"\xff\xed\xa0\x80\"", `{"":{"é":[]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var value any
		if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &value); err != nil {
			t.Skip("not json")
		}
		text, err := asciijson.Marshal(value)
		if err != nil {
			t.Fatalf("cannot marshal decoded JSON: %v", err)
		}
		var again any
		if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &again); err != nil {
			t.Fatalf("cannot decode %q: %v", text, err)
		}
		if delta := cmp.Diff(value, again); delta != "" {
			t.Errorf("-before, +after:\n%s", delta)
		}
		compareToStandard(t, value, text)
		if strings.IndexFunc(text, func(char rune) bool { return char < ' ' || char > '~' }) >= 0 {
			t.Errorf("not printable ASCII: %q", text)
		}
	})
}

func compareToStandard(t *testing.T, value any, text string) {
	t.Helper()
	standard, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("cannot marshal with the standard encoder: %v", err)
	}
	var want, got any
	if err := json.Unmarshal(standard, &want); err != nil {
		t.Fatalf("cannot decode with the standard decoder: %v", err)
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("cannot decode %q: %v", text, err)
	}
	if delta := cmp.Diff(want, got); delta != "" {
		t.Errorf("-want, +got:\n%s", delta)
	}
}
