package execution_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/json"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// epoch is when the clock of the tests starts: that of the vectors.
var epoch = time.Date(2024, 5, 6, 7, 8, 9, 123456000, time.UTC)

func at(seconds float64) time.Time { return epoch.Add(duration(seconds)) }

// duration goes by microseconds, as Kopf's clocks do.
func duration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Microsecond)
}

// fields are the keys of an input; one that the harness does not know fails the test.
type fields map[string]any

// runVectors compares what comes out of every case of a family with what must. Only a case that deviates, with no
// result for that, is skipped.
func runVectors(t *testing.T, family string, run func(t *testing.T, input fields) (any, error)) {
	t.Helper()
	for _, item := range vectorsOf(t, family) {
		c := known(t, item, "name", "standing", "deviation", "input", "expected", "expected_here")
		name, _ := c["name"].(string)
		t.Run(name, func(t *testing.T) {
			want, here := c["expected_here"]
			if c["deviation"] != nil && !here {
				t.Skipf("deviates: %v", c["deviation"])
			}
			if !here {
				want = c["expected"]
			}
			input, _ := c["input"].(map[string]any)
			got, err := run(t, input)
			compare(t, want, got, err)
		})
	}
}

func vectorsOf(t *testing.T, family string) []any {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors/" + family + ".json")
	if err != nil {
		t.Fatalf("reading the vectors: %v", err)
	}
	var file map[string]any
	if err := json.UnmarshalCaseSensitivePreserveInts(data, &file); err != nil {
		t.Fatalf("decoding the vectors: %v", err)
	}
	cases, _ := file["cases"].([]any)
	if file["family"] != family || len(cases) == 0 {
		t.Fatalf("these are not the vectors of %q: %v, %d cases", family, file["family"], len(cases))
	}
	return cases
}

func compare(t *testing.T, want, got any, err error) {
	t.Helper()
	object, _ := want.(map[string]any)
	if _, mustFail := object["error"]; mustFail && len(object) == 1 {
		if err == nil {
			t.Fatalf("got %v, want an error", got)
		}
		return
	}
	if err != nil {
		t.Fatalf("got error %v, want %v", err, want)
	}
	if want, got = ordered(want), ordered(got); !diff.Equal(want, got) {
		t.Errorf("-want, +got:\n%s", cmp.Diff(want, got))
	}
}

// ordered sorts the lists of ids in the expected states: their order says nothing.
func ordered(value any) any {
	states, _ := value.([]any)
	for _, item := range states {
		state, _ := item.(map[string]any)
		for _, key := range []string{"active", "awakened", "finished"} {
			ids, _ := state[key].([]any)
			slices.SortFunc(ids, byText)
		}
	}
	return value
}

func byText(a, b any) int {
	one, _ := a.(string)
	other, _ := b.(string)
	return strings.Compare(one, other)
}

func known(t *testing.T, value any, keys ...string) fields {
	t.Helper()
	mapping, ok := value.(map[string]any)
	if !ok {
		t.Fatalf("not a mapping: %v", value)
	}
	for key := range mapping {
		if !slices.Contains(keys, key) {
			t.Fatalf("the harness does not know the key %q of %v", key, mapping)
		}
	}
	return mapping
}

// number is nil if the key is absent or null.
func (f fields) number(t *testing.T, key string) *float64 {
	t.Helper()
	switch value := f[key].(type) {
	case nil:
		return nil
	case int64:
		return new(float64(value))
	case float64:
		return &value
	default:
		t.Fatalf("not a number: %s is %v", key, value)
		return nil
	}
}

func (f fields) seconds(t *testing.T, key string) *time.Duration {
	t.Helper()
	if n := f.number(t, key); n != nil {
		return new(duration(*n))
	}
	return nil
}

func (f fields) text(key string) string {
	value, _ := f[key].(string)
	return value
}

func (f fields) mapping(key string) fields {
	value, _ := f[key].(map[string]any)
	return value
}

func (f fields) texts(t *testing.T, key string) []string {
	t.Helper()
	list, _ := f[key].([]any)
	texts := make([]string, 0, len(list))
	for _, item := range list {
		text, ok := item.(string)
		if !ok {
			t.Fatalf("not a list of strings: %s is %v", key, list)
		}
		texts = append(texts, text)
	}
	return texts
}
