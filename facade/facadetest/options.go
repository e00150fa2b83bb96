package facadetest

import (
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// Option says what a handler is called with. Each constructor says which ones it takes; others are a mistake.
type Option func(*wishes)

// wishes are all options of one constructor.
type wishes struct {
	given []string // the names of the options

	client        client.Client
	owns, watches []client.Object
	id            string
	old           client.Object
	field         string
	before, after any
	reason        kopf.Reason
	retry         int
	started       time.Time
	stopping      error
	request       *admissionv1.AdmissionRequest
}

// option is one under its name.
func option(name string, set func(*wishes)) Option {
	return func(w *wishes) {
		w.given = append(w.given, name)
		set(w)
	}
}

// newWishes checks that the constructor takes the options, each once.
func newWishes(by string, given []Option, takes ...string) *wishes {
	w := &wishes{id: "handler"}
	for _, one := range given {
		if one == nil {
			mistake("%s: an option is nil: leave it out", by)
		}
		one(w)
	}
	for i, name := range w.given {
		if !slices.Contains(takes, name) {
			mistake("%s takes no %s: its options are %v", by, name, takes)
		}
		if slices.Contains(w.given[:i], name) {
			mistake("%s: %s is given twice: leave one out", by, name)
		}
	}
	return w
}

func (w *wishes) has(name string) bool { return slices.Contains(w.given, name) }

// mistake is one of the test.
func mistake(format string, args ...any) { panic("facadetest: " + fmt.Sprintf(format, args...)) }

// The names of the options.
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

// Client is what the handler reads and writes other objects with, as c.Client and as c.APIReader, such as
// controller-runtime's fake client. Its scheme says of which kind the handled object is, which it need not have.
// Without it, all that the handler asks of a client fails.
func Client(c client.Client) Option { return option(optClient, func(w *wishes) { w.client = c }) }

// Owns watches children of the kinds that are given by empty objects, as Selection.Owns does for the operator: so
// kopf.WaitFor sees what there is of them in the [Client] when the handler is called. Another call of the handler sees
// what has become of them since.
func Owns(kinds ...client.Object) Option { return option(optOwns, func(w *wishes) { w.owns = kinds }) }

// Watches watches all objects of the kinds, as Selection.Watches does for the operator. See [Owns].
func Watches(kinds ...client.Object) Option {
	return option(optWatches, func(w *wishes) { w.watches = kinds })
}

// ID is the id of the handler, which its result stands under. Default: "handler".
func ID(id string) Option { return option(optID, func(w *wishes) { w.id = id }) }

// Old is the object as it was handled last; its status does not count. For an admission, it is the object as it is. Its
// type is that of the object.
func Old(object client.Object) Option { return option(optOld, func(w *wishes) { w.old = object }) }

// Field is the field of the handler, as for OnField, with its values: before goes to Old, which is like the object but
// for that by default, and after to the object. Nil is no value. Both are whatever encodes to JSON.
func Field(path string, before, after any) Option {
	return option(optField, func(w *wishes) { w.field, w.before, w.after = path, before, after })
}

// Reason is why the object is handled. Default: a deletion if the object has a deletionTimestamp, an update with [Old]
// or [Field], else a creation. By kopf.ReasonDelete, the object gets a deletionTimestamp; by that and
// kopf.ReasonResume, Old is like the object by default.
func Reason(reason kopf.Reason) Option {
	return option(optReason, func(w *wishes) { w.reason = reason })
}

// Retry is how many calls of the handler were made before this one. Default: none. It counts for kopf.Retries.
func Retry(retries int) Option { return option(optRetry, func(w *wishes) { w.retry = retries }) }

// Started is when the handler was due for the first time. Default: now. It counts for kopf.Timeout.
func Started(at time.Time) Option { return option(optStarted, func(w *wishes) { w.started = at }) }

// Stopping has a function in the background asked to end from its beginning on: with kopf.ErrDeleted,
// kopf.ErrUnmatched, kopf.ErrPaused or kopf.ErrExiting. See [Task.Stop] for later.
func Stopping(reason error) Option {
	return option(optStopping, func(w *wishes) { w.stopping = reason })
}

// Request is what is asked of an admission: Operation, DryRun, UserInfo, SubResource and, where they are not the
// object's, Name and Namespace. All else is made of the objects. Default: an update with [Old], else a creation.
func Request(r admissionv1.AdmissionRequest) Option {
	return option(optRequest, func(w *wishes) { w.request = &r })
}
