package adapters_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
	"github.com/kopf-runtime/kopf-runtime/test/vectors/declared"
	"github.com/kopf-runtime/kopf-runtime/test/vectors/executiontest"
)

// TestVectorsHandlerOutcomeOfTheChain shows that the chain follows the rules of outcomes, with the cases of package
// execution.
func TestVectorsHandlerOutcomeOfTheChain(t *testing.T) {
	const path = "../../internal/execution/testdata/vectors/handler_outcome.json"
	vectors.RunFile(t, path, func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Bubble(t, func(t *testing.T) {
			got := play(t, input)
			if wanted, _ := want.Value.(map[string]any); vectors.SameText(wanted["message"], got["message"]) {
				got["message"] = wanted["message"]
			}
			if !diff.Equal(want.Value, got) {
				t.Errorf("-want, +got:\n%s", cmp.Diff(want.Value, got))
			}
		})
	})
}

func play(t *testing.T, spec any) map[string]any {
	t.Helper()
	input := vectors.Known(t, spec, "options", "behave", "retries", "runtime", "default_errors", "default_backoff")
	behave := vectors.Fields{}
	if input["behave"] != nil {
		behave = vectors.Known(t, input["behave"], "return", "raise", "message", "delay", "code", "takes")
	}
	var a *execution.Attempt
	a = attemptOf(func(ctx context.Context, _ *handlers.Invocation) error {
		if takes := declared.Seconds(t, behave, "takes"); takes != nil {
			select {
			case <-time.After(*takes):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return errors.Join(a.SetResult(behave["return"]), declared.Raise(t, behave))
	})
	a.Limits = executiontest.Limits(t, input)
	attempt(t.Context(), t, wholeChain(nil), a)
	a.CloseForChanges()
	return executiontest.Outcome(a)
}
