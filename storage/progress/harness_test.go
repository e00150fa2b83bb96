package progress_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// vector is the input of one case; its methods read that, and fail the test on what the harness does not know.
type vector struct {
	t     *testing.T
	input map[string]any
}

// runVectors compares what comes out of every case of a family with what must. A case that deviates, with no result for
// that, is the only one to be skipped.
func runVectors(t *testing.T, family string, run func(v vector) (any, error)) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "vectors", family+".json"))
	if err != nil {
		t.Fatalf("cannot read the vectors: %v", err)
	}
	var file map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &file); err != nil {
		t.Fatalf("cannot decode the vectors: %v", err)
	}
	if file["family"] != family {
		t.Fatalf("the file is of family %v, want %s", file["family"], family)
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
			input := c["input"].(map[string]any)
			unchanged(t, input["body"])
			unchanged(t, input["essence"])
			got, err := run(vector{t: t, input: input})
			compare(t, expected, got, err)
		})
	}
}

func compare(t *testing.T, expected, got any, err error) {
	t.Helper()
	object, _ := expected.(map[string]any)
	if _, mustFail := object["error"]; mustFail && len(object) == 1 {
		if err == nil {
			t.Fatalf("got %v, want an error", got)
		}
		return
	}
	if err != nil {
		t.Fatalf("got error %v, want %v", err, expected)
	}
	if delta := cmp.Diff(normal(expected), normal(got)); delta != "" {
		t.Errorf("-want, +got:\n%s", delta)
	}
}

func requireKeys(t *testing.T, mapping map[string]any, known ...string) {
	t.Helper()
	for key := range mapping {
		if !slices.Contains(known, key) {
			t.Fatalf("unknown key %q: the harness must learn it", key)
		}
	}
}

// normal is a JSON value in the form in which such values are compared: whole floats as integers; texts of JSON objects
// decoded, with what remains to be said of the text beside.
func normal(value any) any {
	switch value := value.(type) {
	case float64:
		if math.Trunc(value) == value && math.Abs(value) < 1<<53 {
			return int64(value)
		}
	case string:
		return normalText(value)
	case []any:
		list := make([]any, len(value))
		for i, element := range value {
			list[i] = normal(element)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(value))
		for key, element := range value {
			object[key] = normalMoment(key, normal(element))
		}
		return object
	}
	return value
}

// normalMoment writes the times of records as records do. A record is of times, not of their texts.
func normalMoment(key string, value any) any {
	if text, ok := value.(string); ok && slices.Contains([]string{"started", "stopped", "delayed"}, key) {
		if moment, err := progress.ParseTimestamp(text); err == nil {
			return progress.FormatTimestamp(moment.UTC())
		}
	}
	return value
}

func normalText(text string) any {
	var object map[string]any
	if !strings.HasPrefix(text, "{") || kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &object) != nil {
		return text
	}
	content, newline := strings.CutSuffix(text, "\n")
	var compacted bytes.Buffer
	_ = json.Compact(&compacted, []byte(content)) // it was decoded already
	return map[string]any{
		"object":  normal(object),
		"compact": compacted.String() == content,
		"ascii":   strings.IndexFunc(text, func(char rune) bool { return char > '~' }) < 0,
		"newline": newline,
	}
}
