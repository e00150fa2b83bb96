package keys_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

func TestNames(t *testing.T) {
	long := strings.Repeat("é", 64)
	tests := map[string]struct {
		reason      string
		prefix, key string
		v1          bool
		want        []string
	}{
		"BrokenUTF8": {
			reason: "invalid UTF-8 is replaced, as JSON cannot hold it",
			prefix: "a.org", key: "fn\xff",
			want: []string{"a.org/fn\uFFFD"},
		},
		"CharactersNotBytes": {
			reason: "the limit counts characters, not bytes",
			prefix: "a.org", key: long[2:],
			want: []string{"a.org/" + long[2:]},
		},
		"CutBetweenCharacters": {
			reason: "a long name is cut between characters and gets a digest",
			prefix: "a.org", key: long,
			want: []string{"a.org/" + long[:112] + "-L1FX4A"},
		},
		"LegacyOff": {
			reason: "without v1, only the current form is returned",
			prefix: keys.KopfPrefix, key: strings.Repeat("x", 47),
			want: []string{"kopf.zalando.org/" + strings.Repeat("x", 47)},
		},
		"LegacySame": {
			reason: "a legacy form that equals the current one is not repeated",
			prefix: keys.KopfPrefix, key: "fn", v1: true,
			want: []string{"kopf.zalando.org/fn"},
		},
		"LegacyDiffers": {
			reason: "the current form comes before the legacy one",
			prefix: keys.KopfPrefix, key: strings.Repeat("x", 47), v1: true,
			want: []string{
				"kopf.zalando.org/" + strings.Repeat("x", 47),
				"kopf.zalando.org/" + strings.Repeat("x", 39) + "-xRCOAQ",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := keys.AnnotationKeys(tc.prefix, tc.key, tc.v1)
			if delta := cmp.Diff(tc.want, got); delta != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}

func BenchmarkNames(b *testing.B) {
	for name, key := range map[string]string{"short": "create_fn", "long": strings.Repeat("x", 64)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				keys.AnnotationKeys(keys.KopfPrefix, key, true)
			}
		})
	}
}

func TestVectorsAnnotationKeys(t *testing.T) {
	vectors.Run(t, "annotation_keys", runKeyVector)
}

func runKeyVector(t *testing.T, input map[string]any, want vectors.Expected) {
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
	key := keys.MarkReplicaSet(body, input["key"].(string))
	names := []any{}
	for _, name := range keys.AnnotationKeys(prefix, key, v1) {
		names = append(names, name)
	}
	got := map[string]any{"keys": names, "v2": keys.CurrentKey(prefix, key), "v1": keys.LegacyKey(prefix, key)}
	if delta := cmp.Diff(want.Value, got); delta != "" {
		t.Errorf("-want, +got:\n%s", delta)
	}
}

func FuzzNames(f *testing.F) {
	f.Add("a.org", "")
	f.Add(keys.KopfPrefix, "create_fn/spec.field")
	f.Add(strings.Repeat("a", 60), strings.Repeat("é", 70))
	f.Add(strings.Repeat("a", 200), "outer.<locals>.fn\xff")
	f.Fuzz(func(t *testing.T, prefix, key string) {
		names := keys.AnnotationKeys(prefix, key, true)
		if names[0] != keys.CurrentKey(prefix, key) || names[len(names)-1] != keys.LegacyKey(prefix, key) {
			t.Fatalf("Names(%q, %q) = %q: not the current form first and the legacy form last", prefix, key, names)
		}
		if len(names) > 2 || len(names) == 2 && names[0] == names[1] {
			t.Fatalf("Names(%q, %q) = %q: not one or two different names", prefix, key, names)
		}
		if again := keys.AnnotationKeys(prefix, key, true); !slices.Equal(names, again) {
			t.Fatalf("Names(%q, %q) = %q, then %q", prefix, key, names, again)
		}
		for _, name := range names {
			requireKeyForm(t, prefix, key, name)
		}
		current := strings.TrimPrefix(names[0], prefix+"/")
		if length := utf8.RuneCountInString(current); length > 63 {
			t.Fatalf("the name %q has %d characters", current, length)
		}
		if current != strings.TrimPrefix(keys.CurrentKey("other.org", key), "other.org/") {
			t.Fatalf("the name %q depends on the prefix", current)
		}
		if keys.ValidateID(key) == nil && keys.ValidateKey("a.org/"+current) != nil {
			t.Fatalf("the id %q is valid, the key is not: %v", key, keys.ValidateKey("a.org/"+current))
		}
	})
}

func requireKeyForm(t *testing.T, prefix, key, full string) {
	t.Helper()
	name, ok := strings.CutPrefix(full, prefix+"/")
	if !ok || !utf8.ValidString(name) || strings.ContainsAny(name, "/<>") {
		t.Fatalf("%q is malformed for the prefix %q, the key %q", full, prefix, key)
	}
}

func ExampleAnnotationKeys() {
	fmt.Println(keys.AnnotationKeys("databases.example.org", "create/users", false))
	for _, name := range keys.AnnotationKeys(keys.KopfPrefix, "handler_fn/spec.nested.nested.nested.nested.nested",
		true) {
		fmt.Println(name)
	}
	// Output:
	// [databases.example.org/create.users]
	// kopf.zalando.org/handler_fn.spec.nested.nested.nested.nested.nested
	// kopf.zalando.org/handler_fn.spec.nested.nested.nested.ne-1NsAGQ
}

func ExampleMarkedPrefixes() {
	annotations := map[string]any{
		"other.example.org/kopf-managed": "yes",
		"other.example.org/create":       `{"retries":1}`,
		"example.org/contact":            "someone",
	}
	marked := keys.MarkedPrefixes(annotations)
	fmt.Println(marked)
	fmt.Println(marked.CoversKey("other.example.org/create"), marked.CoversKey("example.org/contact"))
	// Output:
	// [other.example.org]
	// true false
}

func ExampleValidateID() {
	fmt.Println(keys.ValidateID("outer.<locals>.fn"))
	fmt.Println(strings.ReplaceAll(keys.ValidateID("my fn").Error(), ": ", ":\n"))
	// Output:
	// <nil>
	// invalid handler id "my fn":
	// it cannot be an annotation:
	// choose an id of letters, digits, "-", "_", ".", "/" that begins and ends with a letter or digit
}
