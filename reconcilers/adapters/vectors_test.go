package adapters_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers/declared"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// The rules of outcomes are shown by package execution; that the chain follows them, by the same cases here.
func TestVectorsHandlerOutcomeOfTheChain(t *testing.T) {
	const path = "../execution/testdata/vectors/handler_outcome.json"
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
	a = attemptOf(func(ctx context.Context, _ *handlers.Call) error {
		if takes := declared.Seconds(t, behave, "takes"); takes != nil {
			select {
			case <-time.After(*takes):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return errors.Join(a.SetResult(behave["return"]), declared.Raise(t, behave))
	})
	a.Limits = limitsOf(t, input)
	attempt(t.Context(), t, whole(nil), a)
	a.End()
	got := map[string]any{
		"final": a.Outcome.Final, "delay": nil, "result": a.Result(), "exception": nil, "message": nil,
	}
	if a.Outcome.Delay != nil {
		got["delay"] = a.Outcome.Delay.Seconds()
	}
	if a.Outcome.Err != nil {
		got["exception"], got["message"] = classOf(a.Outcome.Err), a.Outcome.Err.Error()
	}
	return got
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
		if limits.Backoff = *backoff; *backoff == 0 {
			limits.Backoff = -1
		}
	}
	return limits
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
