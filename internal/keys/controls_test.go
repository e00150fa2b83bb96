package keys_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/keys"
)

// controlKeys are the keys that control the handling of one object.
var controlKeys = []string{keys.HandleNow, keys.HandledNow, keys.Paused, keys.FailedHandlers}

// TestNoIDHasAControlKey shows that no valid handler id is stored under a key that controls the handling: neither by
// its own name, nor by replaced characters, nor by the cut and the digest of long ids, with any prefix.
func TestNoIDHasAControlKey(t *testing.T) {
	for _, key := range controlKeys {
		for _, id := range []string{key, key + "-ofDRS", key + "-ofSecret"} {
			if keys.ValidateID(id) == nil {
				t.Errorf("the id %q is valid, so its records would overwrite the annotation", id)
			}
		}
		for _, id := range []string{key + "s", key + "/sub", "sub/" + key, key + ".x", strings.ToUpper(key)} {
			if err := keys.ValidateID(id); err != nil {
				t.Errorf("the id %q has another key, and is valid: %v", id, err)
			}
		}
		// A cut name ends with a dash and six characters, or has no room for more than them.
		dash := strings.LastIndex(key, "-")
		if dash >= 0 && len(key)-dash == len("-xRCOAQ") {
			t.Errorf("the key %q has the form of a cut name", key)
		}
	}
}

// FuzzNoIDHasAControlKey looks for an id and a prefix that refute [TestNoIDHasAControlKey].
func FuzzNoIDHasAControlKey(f *testing.F) {
	f.Add("op.example.org", "paused")
	f.Add(strings.Repeat("a", 56), "handle-now")
	f.Add(strings.Repeat("a", 60), strings.Repeat("<paused>", 20))
	f.Fuzz(func(t *testing.T, prefix, id string) {
		if keys.ValidatePrefix(prefix) != nil || keys.ValidateID(id) != nil {
			return
		}
		for _, name := range keys.AnnotationKeys(prefix, id, true) {
			if keys.IsControl(prefix, name) {
				t.Fatalf("the id %q with the prefix %q has the key %q", id, prefix, name)
			}
		}
	})
}

func TestIsControl(t *testing.T) {
	tests := map[string]struct {
		reason string
		key    string
		want   bool
	}{
		"Plain":       {"each of the keys counts", "a.org/paused", true},
		"Kind":        {"a key with a kind counts", "a.org/failed-handlers-ofSecret", true},
		"ReplicaSet":  {"a key of a ReplicaSet counts", "a.org/handle-now-ofDRS", true},
		"Longer":      {"a longer name is that of a handler", "a.org/paused-now", false},
		"OtherPrefix": {"another prefix is that of another operator", "b.org/paused", false},
		"Subdomain":   {"a prefix that only begins alike is another one", "a.organic/paused", false},
		"NoPrefix":    {"a key without a prefix is the user's own", "paused", false},
		"Memory":      {"other reserved keys control nothing", "a.org/handled-uid", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := keys.IsControl("a.org", tc.key); got != tc.want {
				t.Errorf("%s: IsControl(%q) is %v", tc.reason, tc.key, got)
			}
		})
	}
	for _, key := range controlKeys {
		set := map[string]any{"kind": "ReplicaSet", "metadata": map[string]any{
			"ownerReferences": []any{map[string]any{"kind": "Deployment"}},
		}}
		got := []string{keys.AnnotationKeyOn(nil, "a.org", "", key), keys.AnnotationKeyOn(set, "a.org", "", key)}
		if want := []string{"a.org/" + key, "a.org/" + key + "-ofDRS"}; !slices.Equal(want, got) {
			t.Errorf("the keys are %v, want %v", got, want)
		}
	}
}
