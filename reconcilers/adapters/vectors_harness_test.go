package adapters_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// runVectors compares the results of all cases of a family with the expected ones.
func runVectors(t *testing.T, family string, run func(t *testing.T, input vectors.Fields) (any, error)) {
	t.Helper()
	vectors.Run(t, family, func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		got, err := run(t, input)
		if want.Failed(t, got, err) {
			return
		}
		if want, got := ordered(want.Value), ordered(got); !diff.Equal(want, got) {
			t.Errorf("-want, +got:\n%s", cmp.Diff(want, got))
		}
	})
}

// ordered sorts the items of the diff of a changing cause by their paths, because their order is not significant.
func ordered(value any) any {
	root, _ := value.(map[string]any)
	if fields, ok := root["extra_fields"].([]any); ok {
		sorted(fields)
	}
	changing, _ := root["changing"].(map[string]any)
	items, _ := changing["diff"].([]any)
	slices.SortStableFunc(items, func(a, b any) int { return strings.Compare(pathText(a), pathText(b)) })
	return value
}

func pathText(item any) string {
	parts, _ := item.([]any)
	keys, _ := parts[1].([]any)
	text := ""
	for _, key := range keys {
		name, _ := key.(string)
		text += "\x00" + name
	}
	return text
}
