package adapters_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// raised is what the function of a vector raises; its behaviour is its class.
type raised struct{ class, message string }

func (e *raised) Error() string { return e.message }

type permanentError struct{ raised }

func (*permanentError) Permanent() bool { return true }

type temporaryError struct {
	raised
	delay time.Duration
}

func (e *temporaryError) RetryAfter() time.Duration { return e.delay }

// The rules of outcomes are shown by package execution; that the chain follows them, by the same cases here.
func TestVectorsHandlerOutcomeOfTheChain(t *testing.T) {
	const path = "../execution/testdata/vectors/handler_outcome.json"
	vectors.RunFile(t, path, func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Bubble(t, func(t *testing.T) {
			if got := play(t, input); !diff.Equal(want.Value, got) {
				t.Errorf("-want, +got:\n%s", cmp.Diff(want.Value, got))
			}
		})
	})
}

func play(t *testing.T, spec any) map[string]any {
	t.Helper()
	input := vectors.Known(t, spec, "options", "behave", "retries", "runtime", "default_errors", "default_backoff")
	behave := vectors.Known(t, input["behave"], "return", "raise", "message", "delay", "code", "takes")
	var a *execution.Attempt
	a = attemptOf(func(ctx context.Context, _ *handlers.Call) error {
		if takes := seconds(behave, "takes"); takes != nil {
			select {
			case <-time.After(*takes):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return errors.Join(a.SetResult(behave["return"]), raise(t, behave))
	})
	a.Limits = limitsOf(t, input)
	attempt(t.Context(), t, adapters.Standard(nil), a)
	a.End()
	got := map[string]any{"final": a.Outcome.Final, "delay": nil, "result": a.Result(), "exception": nil, "message": nil}
	if a.Outcome.Delay != nil {
		got["delay"] = a.Outcome.Delay.Seconds()
	}
	if a.Outcome.Err != nil {
		got["exception"], got["message"] = classOf(a.Outcome.Err), a.Outcome.Err.Error()
	}
	return got
}

func limitsOf(t *testing.T, input map[string]any) execution.Limits {
	t.Helper()
	options := map[string]any{}
	if input["options"] != nil {
		options = vectors.Known(t, input["options"], "errors", "timeout", "retries", "backoff")
	}
	limits := execution.Limits{ID: "fn", Mode: handlers.ErrorsTemporary, Policy: handlers.Policy{
		Errors: mode(options["errors"]), Timeout: seconds(options, "timeout"), Backoff: seconds(options, "backoff"),
	}}
	if input["default_errors"] != nil {
		limits.Mode = mode(input["default_errors"])
	}
	if retries, ok := options["retries"].(int64); ok {
		limits.Policy.Retries = ptr.To(int(retries))
	}
	if retries, ok := input["retries"].(int64); ok {
		limits.Retries = int(retries)
	}
	if runtime := seconds(input, "runtime"); runtime != nil {
		limits.Runtime = *runtime
	}
	if backoff := seconds(input, "default_backoff"); backoff != nil {
		if limits.Backoff = *backoff; *backoff == 0 {
			limits.Backoff = -1
		}
	}
	return limits
}

func raise(t *testing.T, behave map[string]any) error {
	t.Helper()
	message, given := behave["message"].(string)
	switch behave["raise"] {
	case nil:
		return nil
	case "arbitrary":
		return &raised{"CustomError", message}
	case "temporary":
		if !given {
			message = "None" // so it is if Kopf's own class is raised with no arguments
		}
		delay := time.Minute
		if value, ok := behave["delay"]; ok && value == nil {
			delay = -1
		} else if ok {
			delay = *seconds(behave, "delay")
		}
		return &temporaryError{raised{"TemporaryError", message}, delay}
	default:
		class, ok := map[any]string{
			"permanent": "PermanentError", "admission": "AdmissionError", "timeout": "HandlerTimeoutError", "retries": "HandlerRetriesError",
		}[behave["raise"]]
		if !ok {
			t.Fatalf("the harness cannot raise %v", behave["raise"])
		}
		return &permanentError{raised{class, message}}
	}
}

func classOf(err error) string {
	var timeout *execution.TimeoutError
	var retries *execution.RetriesError
	var ordinary *raised
	var final *permanentError
	var temporary *temporaryError
	switch {
	case errors.As(err, &timeout):
		return "HandlerTimeoutError"
	case errors.As(err, &retries):
		return "HandlerRetriesError"
	case errors.As(err, &final):
		return final.class
	case errors.As(err, &temporary):
		return temporary.class
	case errors.As(err, &ordinary):
		return ordinary.class
	default:
		return "unknown"
	}
}

func mode(name any) handlers.ErrorsMode {
	return map[any]handlers.ErrorsMode{
		"IGNORED": handlers.ErrorsIgnored, "TEMPORARY": handlers.ErrorsTemporary, "PERMANENT": handlers.ErrorsPermanent,
	}[name]
}

// seconds goes by microseconds, as Kopf's clocks do; nil if the key is absent or null.
func seconds(of map[string]any, key string) *time.Duration {
	var value float64
	switch number := of[key].(type) {
	case int64:
		value = float64(number)
	case float64:
		value = number
	default:
		return nil
	}
	return ptr.To(time.Duration(value * float64(time.Second)).Round(time.Microsecond))
}
