package progress_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// vector is the input of one case; its methods read that, and fail the test on what the harness does not know.
type vector struct {
	t     *testing.T
	input map[string]any
}

// runVectors compares what comes out of every case of a family with what must.
func runVectors(t *testing.T, family string, run func(v vector) (any, error)) {
	t.Helper()
	vectors.Run(t, family, func(t *testing.T, input map[string]any, want vectors.Expected) {
		unchanged(t, input["body"])
		unchanged(t, input["essence"])
		got, err := run(vector{t: t, input: input})
		if want.Failed(t, got, err) {
			return
		}
		if delta := cmp.Diff(vectors.Normal(want.Value, normalMoment), vectors.Normal(got, normalMoment)); delta != "" {
			t.Errorf("-want, +got:\n%s", delta)
		}
	})
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
