package asciijson_test

import (
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/storage/asciijson"
)

func TestCut(t *testing.T) {
	tests := map[string]struct {
		reason, text string
		limit        int
		want         string
	}{
		"Short":    {"There is room for it.", "abc", 30, "abc"},
		"Fits":     {"It is counted by what it takes.", "abcdefghij", 10, "abcdefghij"},
		"Long":     {"The beginning stays.", "abcdefghijk", 10, "abcdefghij…"},
		"Escaped":  {"What is escaped takes more.", "a\n\u0001üb", 15, "a\n\u0001ü…"},
		"Pair":     {"A character is never cut in two.", "a😀b", 12, "a…"},
		"Broken":   {"Broken text is mended where it is cut.", "a\xffb" + strings.Repeat("c", 20), 10, "abcc…"},
		"Nothing":  {"There is no room at all.", "abc", 0, "…"},
		"NoneOfIt": {"Neither is there anything.", "", 0, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := asciijson.Cut(tc.text, tc.limit)
			if got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
			if size := len(asciijson.AppendString(nil, strings.TrimSuffix(got, "…"))) - len(`""`); size > tc.limit {
				t.Errorf("%s\nit takes %d bytes of %d", tc.reason, size, tc.limit)
			}
		})
	}
}
