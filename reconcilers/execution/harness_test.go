package execution_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// epoch is when the clock of the tests starts: that of the vectors.
var epoch = time.Date(2024, 5, 6, 7, 8, 9, 123456000, time.UTC)

func at(seconds float64) time.Time { return epoch.Add(duration(seconds)) }

// duration goes by microseconds, as Kopf's clocks do.
func duration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Microsecond)
}

// runVectors compares what comes out of every case of a family with what must.
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

// number is nil if the key is absent or null.
func number(t *testing.T, f vectors.Fields, key string) *float64 {
	t.Helper()
	switch value := f[key].(type) {
	case nil:
		return nil
	case int64:
		return ptr.To(float64(value))
	case float64:
		return &value
	default:
		t.Fatalf("not a number: %s is %v", key, value)
		return nil
	}
}

func seconds(t *testing.T, f vectors.Fields, key string) *time.Duration {
	t.Helper()
	if n := number(t, f, key); n != nil {
		return ptr.To(duration(*n))
	}
	return nil
}

func texts(t *testing.T, f vectors.Fields, key string) []string {
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
