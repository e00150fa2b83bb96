package facadetest

import (
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// Option configures the call of a handler. Each constructor documents the options that it accepts, and panics for
// others.
type Option func(*optionValues)

// optionValues holds the values of all options of one constructor.
type optionValues struct {
	optionNames []string // the names of the passed options, to detect duplicates and explicit zero values

	client        client.Client
	owns, watches []client.Object
	id            string
	old           client.Object
	field         string
	before, after any
	reason        kopf.Reason
	retry         int
	started       time.Time
	stopReason    error
	request       *admissionv1.AdmissionRequest
}

// namedOption returns an option that also records its name.
func namedOption(name string, set func(*optionValues)) Option {
	return func(w *optionValues) {
		w.optionNames = append(w.optionNames, name)
		set(w)
	}
}

// newOptionValues applies the options. It panics if the constructor does not accept one of them, or if one is repeated.
func newOptionValues(by string, given []Option, takes ...string) *optionValues {
	w := &optionValues{id: "handler"}
	for _, one := range given {
		if one == nil {
			panicMisuse("%s: an option is nil: leave it out", by)
		}
		one(w)
	}
	for i, name := range w.optionNames {
		if !slices.Contains(takes, name) {
			panicMisuse("%s takes no %s: its options are %v", by, name, takes)
		}
		if slices.Contains(w.optionNames[:i], name) {
			panicMisuse("%s: %s is given twice: leave one out", by, name)
		}
	}
	return w
}

// isGiven reports whether the test has passed the option, also with a zero value.
func (w *optionValues) isGiven(name string) bool { return slices.Contains(w.optionNames, name) }

// panicMisuse panics with a message about a misuse of the kit. It does not need a testing.TB, and no test can take it
// for a failure of the handler.
func panicMisuse(format string, args ...any) { panic("facadetest: " + fmt.Sprintf(format, args...)) }

// The names of the options, as they appear in messages.
const (
	optClient   = "Client"
	optOwns     = "Owns"
	optWatches  = "Watches"
	optID       = "ID"
	optOld      = "Old"
	optField    = "Field"
	optReason   = "Reason"
	optRetry    = "Retry"
	optStarted  = "Started"
	optStopping = "Stopping"
	optRequest  = "Request"
)

// Client sets the client for other objects, which the handler uses as c.Client and c.APIReader. It can be
// controller-runtime's fake client. Its scheme defines the kind of the handled object, which the client need not
// contain. Without this option, all requests of the handler fail.
func Client(c client.Client) Option {
	return namedOption(optClient, func(w *optionValues) { w.client = c })
}

// Owns watches children of the kinds, given by empty objects, as Selection.Owns does for the operator. kopf.WaitFor
// then sees the children that exist in the [Client] when the handler is called. The next call of the handler sees later
// changes.
func Owns(kinds ...client.Object) Option {
	return namedOption(optOwns, func(w *optionValues) { w.owns = kinds })
}

// Watches watches all objects of the kinds, as Selection.Watches does for the operator. See [Owns].
func Watches(kinds ...client.Object) Option {
	return namedOption(optWatches, func(w *optionValues) { w.watches = kinds })
}

// ID sets the handler id, under which the result is stored. Default: "handler".
func ID(id string) Option { return namedOption(optID, func(w *optionValues) { w.id = id }) }

// Old sets the object as it was last handled; its status is ignored. For an admission, it is the stored object. Its
// type must be that of the object.
func Old(object client.Object) Option {
	return namedOption(optOld, func(w *optionValues) { w.old = object })
}

// Field sets the field of the handler, as with OnField, and its values. The value before is set in Old, which otherwise
// equals the object by default, and the value after in the object. Nil means that the field is absent. Other values
// must encode to JSON.
func Field(path string, before, after any) Option {
	return namedOption(optField, func(w *optionValues) { w.field, w.before, w.after = path, before, after })
}

// Reason sets the reason why the object is handled. Default: a deletion if the object has a deletionTimestamp, an
// update with [Old] or [Field], else a creation. With kopf.ReasonDelete, the object gets a deletionTimestamp. With
// kopf.ReasonDelete or kopf.ReasonResume, Old equals the object by default.
func Reason(reason kopf.Reason) Option {
	return namedOption(optReason, func(w *optionValues) { w.reason = reason })
}

// Retry sets the number of earlier calls of the handler. Default: none. It counts for kopf.Retries.
func Retry(retries int) Option {
	return namedOption(optRetry, func(w *optionValues) { w.retry = retries })
}

// Started sets the time when the handler was first due. Default: now. It counts for kopf.Timeout.
func Started(at time.Time) Option {
	return namedOption(optStarted, func(w *optionValues) { w.started = at })
}

// Stopping stops a background function from the start of its call, with the reason kopf.ErrDeleted, kopf.ErrUnmatched,
// kopf.ErrPaused or kopf.ErrExiting. To stop it later, see [Task.Stop].
func Stopping(reason error) Option {
	return namedOption(optStopping, func(w *optionValues) { w.stopReason = reason })
}

// Request sets fields of the admission request: Operation, DryRun, UserInfo, SubResource, and Name and Namespace if
// they differ from the object's. All other fields are made from the objects. Default: an update with [Old], else a
// creation.
func Request(r admissionv1.AdmissionRequest) Option {
	return namedOption(optRequest, func(w *optionValues) { w.request = &r })
}
