package keys_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/keys"
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
			reason: "JSON cannot carry broken bytes; what is written must be what is read",
			prefix: "a.org", key: "fn\xff",
			want: []string{"a.org/fn\uFFFD"},
		},
		"CharactersNotBytes": {
			reason: "63 characters are not long, however many bytes they take",
			prefix: "a.org", key: long[2:],
			want: []string{"a.org/" + long[2:]},
		},
		"CutBetweenCharacters": {
			reason: "56 whole characters stay, none is cut in halves",
			prefix: "a.org", key: long,
			want: []string{"a.org/" + long[:112] + "-L1FX4A"},
		},
		"LegacyOff": {
			reason: "without v1 there is one key, even if the legacy one differs",
			prefix: keys.KopfPrefix, key: strings.Repeat("x", 47),
			want: []string{"kopf.zalando.org/" + strings.Repeat("x", 47)},
		},
		"LegacySame": {
			reason: "the same key is not listed twice",
			prefix: keys.KopfPrefix, key: "fn", v1: true,
			want: []string{"kopf.zalando.org/fn"},
		},
		"LegacyDiffers": {
			reason: "the current form is read first",
			prefix: keys.KopfPrefix, key: strings.Repeat("x", 47), v1: true,
			want: []string{
				"kopf.zalando.org/" + strings.Repeat("x", 47),
				"kopf.zalando.org/" + strings.Repeat("x", 39) + "-xRCOAQ",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := keys.Names(tc.prefix, tc.key, tc.v1)
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
				keys.Names(keys.KopfPrefix, key, true)
			}
		})
	}
}
