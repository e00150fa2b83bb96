package informers

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
)

// TestReducedObjects shows that objects of no interest are reduced to their identity, in any order and form of their
// fields.
func TestReducedObjects(t *testing.T) {
	decoder := textDecoder{packer: compact.NewPacker(nil), keepsWhole: func(metadata []byte) bool {
		return bytes.Contains(metadata, []byte("owner"))
	}}
	long := strings.Repeat("x", 100<<10)
	tests := map[string]struct{ reason, text, want string }{
		"Stranger": {
			"an object of no interest keeps its identity only",
			`{"kind":"A","apiVersion":"v1","data":{"k":"` + long + `"},` +
				`"metadata":{"annotations":{"a":"` + long + `"},` +
				`"uid":"u","namespace":"ns","managedFields":[{}],"name":"n","resourceVersion":"7"}}`,
			`{"kind":"A","apiVersion":"v1","metadata":{"uid":"u","namespace":"ns","name":"n","resourceVersion":"7"}}`,
		},
		"Deleted": {
			"an object in deletion keeps its deletion timestamp",
			`{"metadata":{"name":"n","deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["f"]},"kind":"A"}`,
			`{"kind":"A","metadata":{"name":"n","deletionTimestamp":"2026-01-01T00:00:00Z"}}`,
		},
		"Child": {
			"an object of interest is kept whole",
			`{"kind":"A","metadata":{"name":"n","labels":{"owner":"o"}},"data":{"k":"v"}}`,
			`{"kind":"A","metadata":{"name":"n","labels":{"owner":"o"}},"data":{"k":"v"}}`,
		},
		"List": {
			"elements of a list get the type of the list",
			`{"kind":"AList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[` +
				`{"metadata":{"name":"n"},"data":{}},{"metadata":{"name":"owner"},"data":{}}]}`,
			`list 9; {"apiVersion":"v1","kind":"A","metadata":{"name":"n"}}; ` +
				`{"apiVersion":"v1","kind":"A","metadata":{"name":"owner"},"data":{}}`,
		},
		"Bookmark": {
			"the bookmark at the end of a list is not an object",
			`{"kind":"A","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}`,
			`{"kind":"A","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			decoded, _, err := decoder.Decode([]byte(tc.text), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := decodedLine(t, decoded)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
			for text := range strings.SplitSeq(strings.TrimPrefix(got, "list 9; "), "; ") {
				if !json.Valid([]byte(text)) {
					t.Errorf("invalid JSON: %s", text)
				}
			}
		})
	}
}
