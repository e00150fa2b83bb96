package kopf

import (
	"fmt"
	"reflect"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Option is any option of any verb, for [JoinOptions].
type Option interface{ anyOption() }

// onOption is an option of On: one of any verb for changes.
type onOption interface {
	Option
	onOption()
}

// filterOption is an option of every verb that has objects: those for changes, OnEvent, indices, those in the
// background, and those for admission.
//
//nolint:interfacebloat // a family of options is all of the families that it is for
type filterOption interface {
	changeOption
	watchOption
	backgroundOption
	admissionOption
}

// watchOption is an option of the verbs that look at objects as they are.
type watchOption interface {
	watchEventOption
	indexOption
}

// changeOption is an option of all verbs for changes: OnCreate, OnUpdate, OnDelete, OnResume, OnField, On, and of
// sub-handlers.
type changeOption interface {
	changeOption()
	narrowOptions
}

// narrowOptions are those of single verbs for changes: what all of them take, each of them takes.
type narrowOptions interface {
	deleteOption
	resumeOption
	updateOption
}

// deleteOption is an option of OnDelete.
type deleteOption interface {
	onOption
	deleteOption()
}

// finalizerOption is an option of the verbs that add the finalizer: OnDelete, Daemon and Timer.
type finalizerOption interface {
	deleteOption
	backgroundOption
}

// resumeOption is an option of OnResume.
type resumeOption interface {
	onOption
	resumeOption()
}

// updateOption is an option of the verbs that compare an old value with a new one: OnUpdate, OnField, and of
// sub-handlers.
type updateOption interface {
	onOption
	subOption
	updateOption()
}

// subOption is an option of sub-handlers: all of OnUpdate, and those that say what one comes after.
type subOption interface {
	Option
	updateOrSubOption()
}

// watchEventOption is an option of OnEvent.
type watchEventOption interface {
	Option
	watchEventOption()
}

// option is all options of all families: what a verb accepts is decided by the type that an option is returned as.
type option struct {
	name    string       // as the user wrote it, without arguments
	family  reflect.Type // the returned interface; in a Policy, it decides which verbs accept the option
	set     func(*handlers.Handler)
	err     error    // why it is wrong
	parts   []Option // of a Policy
	given   any      // the pattern of the handler's field, as the user wrote it
	equals  any      // what the handler's field has to be equal to, in JSON
	matches any      // the function of WhenChange and the like, as the user wrote it
}

// optionOf makes an option of a family: the one that it is returned as.
func optionOf[O Option](name string, err error, set func(*handlers.Handler)) O {
	return inFamily[O](option{name: name, err: err, set: set})
}

func inFamily[O Option](o option) O {
	o.family = reflect.TypeFor[O]()
	returned, _ := any(o).(O) // option is in all families
	return returned
}

func (option) anyOption()         {}
func (option) onOption()          {}
func (option) changeOption()      {}
func (option) deleteOption()      {}
func (option) resumeOption()      {}
func (option) updateOption()      {}
func (option) updateOrSubOption() {}
func (option) watchEventOption()       {}

// Retries sets how many times the handler is called at most for one cause; when they are used up, it has failed for
// good. Default: without a limit. Kopf: retries=.
func Retries(n int) limitOption {
	var err error
	if n < 1 {
		err = fmt.Errorf("Retries(%d): it counts the calls, so it must be at least 1", n)
	}
	return optionOf[limitOption]("Retries", err, func(h *handlers.Handler) { h.Policy.Retries = &n })
}

// Timeout sets when the handler has failed for good, counted from the moment it was first due for the cause: waits
// between attempts and downtimes of the operator are included. A call that is running then is cancelled with
// [ErrTimeout]. Default: none; a call that never ends holds one of the workers of its kind for ever, see
// [QueueingSettings] then. Kopf: timeout=, which does not cancel.
func Timeout(limit time.Duration) limitOption {
	return optionOf[limitOption]("Timeout", positiveDuration("Timeout", limit), func(h *handlers.Handler) {
		h.Policy.Timeout = &limit
	})
}

// Backoff sets the delay after an ordinary error; that of a [Temporary] error is its own. Default: that of the
// operator, see [ExecutionSettings]. Kopf: backoff=.
func Backoff(delay time.Duration) limitOption {
	return optionOf[limitOption]("Backoff", delayDuration("Backoff", delay), func(h *handlers.Handler) {
		h.Policy.Backoff = &delay
	})
}

// Errors sets what an ordinary error means. Default: [ErrorsTemporary]. Kopf: errors=.
func Errors(mode ErrorsMode) limitOption {
	var err error
	switch mode {
	case ErrorsTemporary, ErrorsPermanent, ErrorsIgnored:
	default:
		err = fmt.Errorf("Errors(%d): it must be ErrorsTemporary, ErrorsPermanent or ErrorsIgnored", mode)
	}
	return optionOf[limitOption]("Errors", err, func(h *handlers.Handler) { h.Policy.Errors = handlers.ErrorsMode(mode) })
}

// Optional makes a delete handler, a daemon or a timer add no finalizer. See docs/deletion.md. Kopf: optional=True.
//
// If something else of the operator holds the object, such as another delete handler, an optional delete handler is
// called as part of the deletion. Otherwise it is called once when the watch reports that the object has disappeared,
// with the last known state: there are no retries, no sub-handlers, and nothing is written. It is not called for
// objects that disappear while the operator is down or paused; nor, with [AsKopf], for objects that nothing holds.
//
// A daemon or a timer that is optional starts as soon as the object is seen, and is stopped when the object is deleted
// or has disappeared, which does not wait for it. Its last patches may be lost, and its resources stay if the operator
// is down meanwhile.
func Optional() finalizerOption {
	return optionOf[finalizerOption]("Optional", nil, func(h *handlers.Handler) { h.Optional = true })
}

// HoldOnFailure makes a delete handler keep the object when it has failed permanently: by a permanent error, its
// timeout or its retries. By default, the finalizer is removed, and the object goes without its cleanup. The failure is
// in the log and, with [Selection.Conditions], in the conditions. The failure of a sub-handler counts as one of the
// handler.
//
// The finalizer stays, also over restarts of the operator, until the object is edited or a user removes the finalizer.
// An edit of the labels, the annotations or the configuration, once all delete handlers have finished, calls the failed
// handlers again, with new limits. If the edit makes a filter exclude the object, the object goes. See
// docs/deletion.md.
func HoldOnFailure() deleteOption {
	return optionOf[deleteOption]("HoldOnFailure", nil, func(h *handlers.Handler) { h.HoldOnFailure = true })
}

// EvenIfDeleted makes a resume handler take part in the deletion of an object that was being deleted when the operator
// started. Kopf: deleted=True.
func EvenIfDeleted() resumeOption {
	return optionOf[resumeOption]("EvenIfDeleted", nil, func(h *handlers.Handler) { h.EvenIfDeleted = true })
}
