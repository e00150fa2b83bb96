package executiontest

import (
	"errors"
	"math"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
	"github.com/kopf-runtime/kopf-runtime/test/vectors/declared"
)

// Limits reads "options", "retries", "runtime", "default_errors" and "default_backoff" of a case. The handler is "fn".
func Limits(t testing.TB, input vectors.Fields) execution.Limits {
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
		if limits.Backoff = *backoff; *backoff == 0 {
			limits.Backoff = -1
		}
	}
	return limits
}

// Outcome is that of an ended attempt, and its result, in the form of the cases.
func Outcome(attempt *execution.Attempt) map[string]any {
	o := attempt.Outcome
	got := map[string]any{"final": o.Final, "delay": nil, "result": attempt.ResultToWrite(), "exception": nil,
		"message": nil}
	if o.Delay != nil {
		got["delay"] = o.Delay.Seconds()
	}
	if o.Err != nil {
		got["exception"], got["message"] = classOf(o.Err), o.RecordText(true)
	}
	return got
}

func classOf(err error) string {
	switch {
	case errors.Is(err, execution.ErrTimeout):
		return "HandlerTimeoutError"
	case errors.Is(err, execution.ErrRetries):
		return "HandlerRetriesError"
	default:
		return declared.Class(err)
	}
}
