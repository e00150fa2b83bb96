package keys_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/keys"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

func TestVectorsAnnotationKeys(t *testing.T) {
	vectors.Run(t, "annotation_keys", playKeys)
}

func playKeys(t *testing.T, input map[string]any, want vectors.Expected) {
	t.Helper()
	vectors.Known(t, input, "key", "prefix", "v1", "body")
	prefix, v1 := keys.KopfPrefix, true
	if given, ok := input["prefix"]; ok {
		// A null prefix is as invalid as an empty one.
		prefix, _ = given.(string)
	}
	if given, ok := input["v1"]; ok {
		v1 = given.(bool)
	}
	if want.MustFail() {
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
	if delta := cmp.Diff(want.Value, got); delta != "" {
		t.Errorf("-want, +got:\n%s", delta)
	}
}
