package execution_test

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
	"github.com/kopf-runtime/kopf-runtime/test/vectors/declared"
	"github.com/kopf-runtime/kopf-runtime/test/vectors/executiontest"
)

func TestVectorsHandlerOutcome(t *testing.T) {
	runVectors(t, "handler_outcome", func(t *testing.T, input vectors.Fields) (any, error) {
		vectors.Known(t, input, "options", "behave", "retries", "runtime", "default_errors", "default_backoff")
		limits := executiontest.Limits(t, input)
		behave := vectors.Fields{}
		if input["behave"] != nil {
			behave = vectors.Known(t, input["behave"], "return", "raise", "message", "delay", "code", "takes")
		}
		attempt := &execution.Attempt{Outcome: play(t, limits, behave)}
		attempt.Call.Handler = &handlers.Handler{ID: limits.ID}
		if limits.ExceededError() == nil {
			if err := attempt.SetResult(behave["return"]); err != nil {
				return nil, err
			}
		}
		attempt.CloseForChanges()
		return executiontest.Outcome(attempt), nil
	})
}

// play judges a call as the adapters do.
func play(t *testing.T, limits execution.Limits, behave vectors.Fields) execution.Outcome {
	t.Helper()
	if err := limits.ExceededError(); err != nil {
		return execution.Outcome{Final: true, Err: err}
	}
	if takes := declared.Seconds(t, behave, "takes"); takes != nil {
		limits.Runtime += *takes
		if timeout := limits.Policy.Timeout; timeout != nil && limits.Runtime >= *timeout {
			limits.Runtime = *timeout
			return limits.OutcomeOf(limits.InterruptedError(execution.ErrTimeout))
		}
	}
	return limits.OutcomeOf(declared.Raise(t, behave))
}
