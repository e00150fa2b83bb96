package execution_test

import (
	"errors"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// raised is what a function of a vector raises. It tells by its behaviour of what kind it is.
type raised struct{ class, message string }

func (e *raised) Error() string { return e.message }

type permanentError struct{ raised }

func (*permanentError) Permanent() bool { return true }

type temporaryError struct {
	raised
	delay time.Duration
	cause error
}

func (e *temporaryError) Unwrap() error             { return e.cause }
func (e *temporaryError) RetryAfter() time.Duration { return e.delay }

var classes = map[string]string{
	"temporary": "TemporaryError", "permanent": "PermanentError", "arbitrary": "CustomError",
	"admission": "AdmissionError", "timeout": "HandlerTimeoutError", "retries": "HandlerRetriesError",
}

var modes = map[string]handlers.ErrorsMode{
	"IGNORED": handlers.ErrorsIgnored, "TEMPORARY": handlers.ErrorsTemporary, "PERMANENT": handlers.ErrorsPermanent,
}

func TestVectorsHandlerOutcome(t *testing.T) {
	runVectors(t, "handler_outcome", func(t *testing.T, input vectors.Fields) (any, error) {
		vectors.Known(t, input, "options", "behave", "retries", "runtime", "default_errors", "default_backoff")
		limits := limitsOf(t, input)
		behave := vectors.Known(t, input["behave"], "return", "raise", "message", "delay", "code", "takes")
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
	limits := execution.Limits{ID: "fn", Mode: handlers.ErrorsTemporary, Policy: handlers.Policy{
		Errors: mode(t, options["errors"]), Timeout: seconds(t, options, "timeout"), Backoff: seconds(t, options, "backoff"),
	}}
	if input["default_errors"] != nil {
		limits.Mode = mode(t, input["default_errors"])
	}
	if retries := number(t, options, "retries"); retries != nil {
		limits.Policy.Retries = ptr.To(int(*retries))
	}
	if retries := number(t, input, "retries"); retries != nil {
		limits.Retries = int(*retries)
	}
	if runtime := seconds(t, input, "runtime"); runtime != nil {
		limits.Runtime = *runtime
	}
	if backoff := seconds(t, input, "default_backoff"); backoff != nil {
		limits.Backoff = *backoff
		if *backoff == 0 {
			limits.Backoff = -1
		}
	}
	return limits
}

func mode(t *testing.T, name any) handlers.ErrorsMode {
	t.Helper()
	if name == nil {
		return handlers.ErrorsDefault
	}
	text, _ := name.(string)
	found, ok := modes[text]
	if !ok {
		t.Fatalf("the harness does not know the errors mode %v", name)
	}
	return found
}

// play does what the adapters do around a call.
func play(t *testing.T, limits execution.Limits, behave vectors.Fields) execution.Outcome {
	t.Helper()
	if err := limits.Exceeded(); err != nil {
		return execution.Outcome{Final: true, Err: err}
	}
	if takes := seconds(t, behave, "takes"); takes != nil {
		limits.Runtime += *takes
		if timeout := limits.Policy.Timeout; timeout != nil && limits.Runtime >= *timeout {
			limits.Runtime = *timeout
			return limits.Judge(limits.Interrupted(execution.ErrTimeout))
		}
	}
	return limits.Judge(raise(t, behave))
}

func raise(t *testing.T, behave vectors.Fields) error {
	t.Helper()
	if behave["raise"] == nil {
		return nil
	}
	class, ok := classes[behave.Text("raise", "")]
	if !ok {
		t.Fatalf("the harness cannot raise %v", behave["raise"])
	}
	err := raised{class: class, message: behave.Text("message", "")}
	switch class {
	case "CustomError":
		return &err
	case "TemporaryError":
		return raiseTemporary(t, behave, err)
	default:
		return &permanentError{err}
	}
}

func raiseTemporary(t *testing.T, behave vectors.Fields, err raised) error {
	t.Helper()
	if behave["message"] == nil {
		err.message = "None" // so it is if Kopf's own class is raised with no arguments
	}
	delay := 60 * time.Second
	if given, ok := behave["delay"]; ok && given == nil {
		delay = -1
	} else if ok {
		delay = *seconds(t, behave, "delay")
	}
	return &temporaryError{raised: err, delay: delay}
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
	var ordinary *raised
	var permanent *permanentError
	var temporary *temporaryError
	switch {
	case errors.As(err, &timeout):
		return "HandlerTimeoutError"
	case errors.As(err, &retries):
		return "HandlerRetriesError"
	case errors.As(err, &permanent):
		return permanent.class
	case errors.As(err, &temporary):
		return temporary.class
	case errors.As(err, &ordinary):
		return ordinary.class
	default:
		return "unknown"
	}
}
