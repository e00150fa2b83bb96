package keys_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/json"

	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

func TestVectorsAnnotationKeys(t *testing.T) {
	file := decodeFile(t, filepath.Join("testdata", "vectors", "annotation_keys.json"))
	if file["family"] != "annotation_keys" {
		t.Fatalf("the file is of family %v", file["family"])
	}
	for _, item := range file["cases"].([]any) {
		c := item.(map[string]any)
		t.Run(c["name"].(string), func(t *testing.T) {
			requireKeys(t, c, "name", "standing", "deviation", "input", "expected", "expected_here")
			expected, here := c["expected_here"]
			if !here {
				expected = c["expected"]
			}
			if c["deviation"] != nil && !here {
				t.Skipf("deviates: %v", c["deviation"])
			}
			runVector(t, c["input"].(map[string]any), expected.(map[string]any))
		})
	}
}

func runVector(t *testing.T, input, expected map[string]any) {
	t.Helper()
	requireKeys(t, input, "key", "prefix", "v1", "body")
	prefix, v1 := keys.KopfPrefix, true
	if given, ok := input["prefix"]; ok {
		// A null prefix is as invalid as an empty one.
		prefix, _ = given.(string)
	}
	if given, ok := input["v1"]; ok {
		v1 = given.(bool)
	}
	if _, ok := expected["error"]; ok && len(expected) == 1 {
		if err := keys.ValidatePrefix(prefix); err == nil {
			t.Fatalf("an error is expected, but the prefix %q is valid here", prefix)
		}
		return
	}
	body, _ := input["body"].(map[string]any)
	key := keys.Mark(body, input["key"].(string))
	names := []any{}
	for _, name := range keys.Names(prefix, key, v1) {
		names = append(names, name)
	}
	got := map[string]any{"keys": names, "v2": keys.V2(prefix, key), "v1": keys.V1(prefix, key)}
	if delta := cmp.Diff(expected, got); delta != "" {
		t.Errorf("-want, +got:\n%s", delta)
	}
}

func decodeFile(t *testing.T, name string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("cannot read the vectors: %v", err)
	}
	var file map[string]any
	if err := json.UnmarshalCaseSensitivePreserveInts(data, &file); err != nil {
		t.Fatalf("cannot decode %s: %v", name, err)
	}
	return file
}

func requireKeys(t *testing.T, mapping map[string]any, known ...string) {
	t.Helper()
	for key := range mapping {
		if !slices.Contains(known, key) {
			t.Fatalf("unknown key %q: the harness must learn it", key)
		}
	}
}
