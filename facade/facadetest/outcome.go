package facadetest

import (
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
)

// Outcome is the result of one call of a handler.
type Outcome[T client.Object] struct {
	// Err is the error that decides the outcome: that of the handler, joined with those of its Patch, SetResult and
	// similar calls, of a panic, of a limit such as kopf.Retries, or of the write of its changes. It includes errors
	// that the handler's error mode ignores. If the function was not called, or the test has not passed something that
	// the handler uses, Err says so. Nil is a success.
	Err error
	// Called reports whether the function was called.
	Called bool
	// Final reports whether the handler is finished for this change: it has succeeded or failed permanently.
	Final bool
	// Delay is the time until the next call, if Final is false: from kopf.Temporary, kopf.Backoff, or the default of a
	// minute.
	Delay time.Duration
	// Awaited is the child for which the handler, or one of its sub-handlers, waits by kopf.WaitFor, such as
	// "Deployment.apps orders". Err describes the wait as well, and Delay is the remaining time of its timeout.
	Awaited string
	// Object is the object of the test as it is stored now, without the operator's stored state.
	Object T
	// Patch has the changes that the call has written to the object, as one merge-patch of JSON values; nil without
	// changes.
	Patch map[string]any
	// Result is the value of SetResult, as JSON values. It is nil if the handler has set none, or has not succeeded.
	Result any
	// Events are the posted Kubernetes events, in order.
	Events []Posted
	// Subs are the declared sub-handlers, at any depth, in order.
	Subs []Sub
	// Children are the children that are declared by Ensure, sorted, such as "ConfigMap default/settings". To check
	// their content, read them with the client.
	Children []string
	// InPlace lists the fields that the handler has changed in its copy of the object without Patch, and that are not
	// written otherwise. An operator discards such changes and logs a warning. It is empty for a call that has failed.
	InPlace []string
}

// Sub is one sub-handler that a call has declared.
type Sub struct {
	// ID is the sub-handler's own id. For nested sub-handlers, the id of the parent and a slash precede it.
	ID string
	// Called reports whether this call of the handler has called the function.
	Called bool
	// Err is the error of the function. If the function was not called, it is the recorded error of its last attempt.
	Err error
	// State is the state of the sub-handler after the call.
	State kopf.SubState
}

// Posted is a Kubernetes event that a call has posted.
type Posted struct {
	// About identifies the object of the event, such as "Pod default/web", unless it is the handled object.
	About string
	// Type is the event type, such as "Normal".
	Type            string
	Reason, Message string
}

// applyAttempt copies the outcome of the attempt. The attempt is nil if the engine has not reached the handler.
func (o *Outcome[T]) applyAttempt(a *execution.Attempt) {
	if a == nil {
		return
	}
	o.Final, o.Result = a.Outcome.Final, a.ResultToWrite()
	if a.Outcome.Delay != nil {
		o.Delay = *a.Outcome.Delay
	}
	o.Awaited = a.Outcome.Wait.Child
	// Both errors are relevant for a test: the operator only logs the ignored one.
	o.joinError(a.Outcome.Err)
	o.joinError(a.Outcome.Ignored)
}

// joinError joins an error to Err, unless Err contains it already.
func (o *Outcome[T]) joinError(err error) {
	switch {
	case err == nil, o.Err != nil && errors.Is(o.Err, err):
	case o.Err == nil:
		o.Err = err
	default:
		o.Err = errors.Join(o.Err, err)
	}
}
