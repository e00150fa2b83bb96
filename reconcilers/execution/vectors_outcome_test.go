package execution_test

import (
	"errors"
	"math"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers/declared"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

func TestVectorsHandlerOutcome(t *testing.T) {
	runVectors(t, "handler_outcome", func(t *testing.T, input vectors.Fields) (any, error) {
		vectors.Known(t, input, "options", "behave", "retries", "runtime", "default_errors", "default_backoff")
		limits := limitsOf(t, input)
		behave := vectors.Fields{}
		if input["behave"] != nil {
			behave = vectors.Known(t, input["behave"], "return", "raise", "message", "delay", "code", "takes")
		}
		attempt := &execution.Attempt{Outcome: play(t, limits, behave)}
		attempt.Call.Handler = &handlers.Handler{ID: limits.ID}
		if limits.Exceeded() == nil {
			if err := attempt.SetResult(behave["return"]); err != nil {
				return nil, err
			}
		}
		attempt.End()
		return outcomeOf(attempt), nil
	})
}

func limitsOf(t *testing.T, input vectors.Fields) execution.Limits {
	t.Helper()
	options := vectors.Fields{}
	if input["options"] != nil {
		options = vectors.Known(t, input["options"], "errors", "timeout", "retries", "backoff")
	}
	limits := execution.Limits{ID: "fn", Mode: handlers.ErrorsTemporary, Policy: declared.Policy(t, options)}
	if input["default_errors"] != nil {
		limits.Mode = declared.Mode(t, input["default_errors"])
	}
	if retries := vectors.Number(t, input, "retries"); retries != nil {
		limits.Retries = int(math.Floor(*retries))
	}
	limits.Runtime = ptr.Deref(declared.Seconds(t, input, "runtime"), 0)
	if backoff := declared.Seconds(t, input, "default_backoff"); backoff != nil {
		limits.Backoff = *backoff
		if *backoff == 0 {
			limits.Backoff = -1
		}
	}
	return limits
}

// play does what the adapters do around a call.
func play(t *testing.T, limits execution.Limits, behave vectors.Fields) execution.Outcome {
	t.Helper()
	if err := limits.Exceeded(); err != nil {
		return execution.Outcome{Final: true, Err: err}
	}
	if takes := declared.Seconds(t, behave, "takes"); takes != nil {
		limits.Runtime += *takes
		if timeout := limits.Policy.Timeout; timeout != nil && limits.Runtime >= *timeout {
			limits.Runtime = *timeout
			return limits.Judge(limits.Interrupted(execution.ErrTimeout))
		}
	}
	return limits.Judge(declared.Raise(t, behave))
}

func outcomeOf(attempt *execution.Attempt) map[string]any {
	o := attempt.Outcome
	got := map[string]any{"final": o.Final, "delay": nil, "result": attempt.Result(), "exception": nil, "message": nil}
	if o.Delay != nil {
		got["delay"] = o.Delay.Seconds()
	}
	if o.Err != nil {
		got["exception"], got["message"] = classOf(o.Err), o.Err.Error()
	}
	return got
}

func classOf(err error) string {
	var timeout *execution.TimeoutError
	var retries *execution.RetriesError
	switch {
	case errors.As(err, &timeout):
		return "HandlerTimeoutError"
	case errors.As(err, &retries):
		return "HandlerRetriesError"
	default:
		return declared.Class(err)
	}
}
