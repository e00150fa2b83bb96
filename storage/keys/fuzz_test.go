package keys_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

func FuzzNames(f *testing.F) {
	f.Add("a.org", "")
	f.Add(keys.KopfPrefix, "create_fn/spec.field")
	f.Add(strings.Repeat("a", 60), strings.Repeat("é", 70))
	f.Add(strings.Repeat("a", 200), "outer.<locals>.fn\xff")
	f.Fuzz(func(t *testing.T, prefix, key string) {
		names := keys.Names(prefix, key, true)
		if names[0] != keys.V2(prefix, key) || names[len(names)-1] != keys.V1(prefix, key) {
			t.Fatalf("Names(%q, %q) = %q: not the current, then the legacy form", prefix, key, names)
		}
		if len(names) > 2 || len(names) == 2 && names[0] == names[1] {
			t.Fatalf("Names(%q, %q) = %q: not one or two different ones", prefix, key, names)
		}
		if again := keys.Names(prefix, key, true); !slices.Equal(names, again) {
			t.Fatalf("Names(%q, %q) = %q, then %q", prefix, key, names, again)
		}
		for _, name := range names {
			checkForm(t, prefix, key, name)
		}
		current := strings.TrimPrefix(names[0], prefix+"/")
		if length := utf8.RuneCountInString(current); length > 63 {
			t.Fatalf("the name %q has %d characters", current, length)
		}
		if current != strings.TrimPrefix(keys.V2("other.org", key), "other.org/") {
			t.Fatalf("the name %q depends on the prefix", current)
		}
		if keys.ValidateID(key) == nil && keys.ValidateKey("a.org/"+current) != nil {
			t.Fatalf("the id %q is valid, the key is not: %v", key, keys.ValidateKey("a.org/"+current))
		}
	})
}

func checkForm(t *testing.T, prefix, key, full string) {
	t.Helper()
	name, ok := strings.CutPrefix(full, prefix+"/")
	if !ok || !utf8.ValidString(name) || strings.ContainsAny(name, "/<>") {
		t.Fatalf("%q is malformed for the prefix %q, the key %q", full, prefix, key)
	}
}
