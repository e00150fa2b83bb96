package facadetest

import (
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// Outcome is what came of one call of a handler.
type Outcome[T client.Object] struct {
	// Err is the error that the operator goes by: that of the handler, with those of its Patch, SetResult and the like,
	// of a panic, of a limit such as kopf.Retries, or of writing what the handler has patched; and those that the
	// handler's mode ignores. Where the function was not called, or the test has not given what the handler uses, it
	// says so. Nil is a success.
	Err error
	// Called is whether the function was called.
	Called bool
	// Final is true if the handler is not called again for this change: it has succeeded, or failed permanently.
	Final bool
	// Delay is when it is called again, if it is: by kopf.Temporary, kopf.Backoff or the default of a minute.
	Delay time.Duration
	// Awaited is the child that the handler waits for by kopf.WaitFor, itself or by a sub-handler, such as
	// "Deployment.apps orders". Err says so as well, and Delay is what is left of the time for it.
	Awaited string
	// Object is the object of the test as it is in the cluster now, without what the operator keeps for itself.
	Object T
	// Patch is what the call has written to the object, as one merge-patch of JSON values; nil if nothing was.
	Patch map[string]any
	// Result is what the handler has set by SetResult, as JSON values; nil if there is none, or the handler has failed.
	Result any
	// Events are the Kubernetes events that were posted, in that order.
	Events []Posted
	// Subs are the sub-handlers that were declared, at any depth, in that order.
	Subs []Sub
	// Children are those that are declared by Ensure, sorted, such as "ConfigMap default/settings": what is theirs is
	// to be asked of the client.
	Children []string
	// InPlace are the fields that the handler has changed in its copy of the object without Patch, as far as they are
	// written nowhere: an operator tells of them by a line in the log, and they are lost. Nothing is told of a call
	// that has failed.
	InPlace []string
}

// Sub is one sub-handler that was declared by a call.
type Sub struct {
	// ID is its own; behind that of its handler and a slash, if that is a sub-handler itself.
	ID string
	// Called is whether its function was called by this call of the handler.
	Called bool
	// Err is the error of the function; that which is remembered of it, if it was not called.
	Err error
	// State is what has become of it.
	State kopf.SubState
}

// Posted is a Kubernetes event that was posted.
type Posted struct {
	// About is the object, such as "Pod default/web", if it is another one than that of the handler.
	About string
	// Type is such as "Normal".
	Type            string
	Reason, Message string
}

// conclude fills in what is known of the attempt.
func (o *Outcome[T]) conclude(a *execution.Attempt) {
	if a == nil {
		return
	}
	o.Final, o.Result = a.Outcome.Final, a.Result()
	if a.Outcome.Delay != nil {
		o.Delay = *a.Outcome.Delay
	}
	o.Awaited = a.Outcome.Awaited.Child
	o.add(a.Outcome.Err)
	o.add(a.Outcome.Ignored)
}

// add adds an error, unless it is there already.
func (o *Outcome[T]) add(err error) {
	switch {
	case err == nil, o.Err != nil && errors.Is(o.Err, err):
	case o.Err == nil:
		o.Err = err
	default:
		o.Err = errors.Join(o.Err, err)
	}
}
