package execution_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// epoch is the start of the test clock, as in the vectors.
var epoch = time.Date(2024, 5, 6, 7, 8, 9, 123456000, time.UTC)

func at(seconds float64) time.Time { return epoch.Add(duration(seconds)) }

// duration rounds to microseconds, like the clocks of Kopf.
func duration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Microsecond)
}

// runVectors compares the results of all cases of a family with the expected ones.
func runVectors(t *testing.T, family string, run func(t *testing.T, input vectors.Fields) (any, error)) {
	t.Helper()
	vectors.Run(t, family, func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		got, err := run(t, input)
		if want.Failed(t, got, err) {
			return
		}
		informed(want.Value, got)
		if want, got := ordered(want.Value), ordered(got); !diff.Equal(
			vectors.Normal(want, normalMoment), vectors.Normal(got, normalMoment),
		) {
			t.Errorf("-want, +got:\n%s", cmp.Diff(want, got))
		}
	})
}

// informed replaces the message by the expected one if both count as the same text.
func informed(want, got any) {
	wanted, _ := want.(map[string]any)
	given, _ := got.(map[string]any)
	if wanted != nil && given != nil && vectors.SameText(wanted["message"], given["message"]) {
		given["message"] = wanted["message"]
	}
}

// normalMoment converts the times of records to UTC, so that their offsets do not matter.
func normalMoment(key string, value any) any {
	text, isText := value.(string)
	if isText && slices.Contains([]string{"started", "stopped", "delayed"}, key) {
		if moment, err := progress.ParseTimestamp(text); err == nil {
			return progress.FormatTimestamp(moment.UTC())
		}
	}
	return value
}

// ordered sorts the lists of ids in the expected states, whose order does not matter.
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

func seconds(t *testing.T, f vectors.Fields, key string) *time.Duration {
	t.Helper()
	if n := vectors.Number(t, f, key); n != nil {
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
