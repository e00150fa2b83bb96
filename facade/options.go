package facade

import (
	"fmt"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Option is any option of any verb, for [Policy].
type Option interface{ anyOption() }

// FilterOption is an option of every verb that has objects: those for changes, OnEvent, indices, and those in the
// background.
type FilterOption interface {
	ChangeOption
	watchOption
	BackgroundOption
}

// watchOption is an option of the verbs that look at objects as they are.
type watchOption interface {
	EventOption
	IndexOption
}

// ChangeOption is an option of all verbs for changes: OnCreate, OnUpdate, OnDelete, OnResume, OnField, On, and of
// sub-handlers.
type ChangeOption interface {
	changeOption()
	narrowOptions
}

// narrowOptions are those of single verbs for changes: what all of them take, each of them takes.
type narrowOptions interface {
	DeleteOption
	ResumeOption
	UpdateOption
}

// DeleteOption is an option of OnDelete.
type DeleteOption interface {
	Option
	deleteOption()
}

// ResumeOption is an option of OnResume.
type ResumeOption interface {
	Option
	resumeOption()
}

// UpdateOption is an option of the verbs that compare an old value with a new one: OnUpdate, OnField, and of
// sub-handlers.
type UpdateOption interface {
	Option
	updateOption()
}

// EventOption is an option of OnEvent.
type EventOption interface {
	Option
	eventOption()
}

// option is all options of all families: what a verb accepts is decided by the type that an option is returned as.
type option struct {
	name  string // as the user wrote it, without arguments
	set   func(*handlers.Handler)
	err   error    // why it is wrong
	parts []Option // of a Policy
}

func (option) anyOption()    {}
func (option) changeOption() {}
func (option) deleteOption() {}
func (option) resumeOption() {}
func (option) updateOption() {}
func (option) eventOption()  {}

// Policy makes several options one, to be shared by handlers:
//
//	var patient = kopf.Policy(kopf.Retries(10), kopf.Timeout(time.Hour))
//
// What stands next to it among the options of a handler wins over what is in it. Options of different families are
// bundled for the narrower one: Policy[kopf.DeleteOption](kopf.Retries(3), kopf.Optional()).
func Policy[O Option](opts ...O) O {
	bundle := option{name: "Policy"}
	for _, opt := range opts {
		bundle.parts = append(bundle.parts, opt)
	}
	policy, ok := any(bundle).(O)
	if !ok {
		// A type of the user's that embeds one of the interfaces; the verb that gets it will say so.
		addOwnerless(fmt.Errorf("kopf.Policy: %T is no family of options of package facade", policy))
	}
	return policy
}

// applyOptions sets the handler's options: those of policies first, so that what stands on its own wins. An option
// twice in one place is a mistake: nobody can tell which one was meant.
func applyOptions(h *handlers.Handler, opts []Option) []error {
	var problems []error
	var own []option
	for _, opt := range opts {
		o, ok := opt.(option)
		switch {
		case !ok:
			problems = append(problems, fmt.Errorf("%T is no option of package facade", opt))
		case o.set == nil && o.err == nil:
			problems = append(problems, applyOptions(h, o.parts)...)
		default:
			own = append(own, o)
		}
	}
	given := map[string]bool{}
	for _, o := range own {
		switch {
		case o.err != nil:
			problems = append(problems, o.err)
		case given[o.name]:
			problems = append(problems, fmt.Errorf("%s is given twice", o.name))
		default:
			o.set(h)
		}
		given[o.name] = true
	}
	return problems
}

// Retries sets how many times the handler is called at most for one cause; when they are used up, it has failed for
// good. Default: without a limit. Kopf: retries=.
func Retries(n int) LimitOption {
	o := option{name: "Retries", set: func(h *handlers.Handler) { h.Policy.Retries = &n }}
	if n < 1 {
		o.err = fmt.Errorf("Retries(%d): it counts the calls, so it must be at least 1", n)
	}
	return o
}

// Timeout sets when the handler has failed for good, counted from the moment it was first due for the cause: waits
// between attempts and downtimes of the operator are included. A call that is running then is cancelled with
// [ErrTimeout]. Default: none; a call that never ends holds one of the [Workers] for ever then. Kopf: timeout=, which
// does not cancel.
func Timeout(limit time.Duration) LimitOption {
	return option{
		name: "Timeout", err: positiveDuration("Timeout", limit),
		set: func(h *handlers.Handler) { h.Policy.Timeout = &limit },
	}
}

// Backoff sets the delay after an ordinary error; that of a [Temporary] error is its own. Default: that of the
// operator, see [DefaultBackoff]. Kopf: backoff=.
func Backoff(delay time.Duration) LimitOption {
	return option{
		name: "Backoff", err: delayDuration("Backoff", delay),
		set: func(h *handlers.Handler) { h.Policy.Backoff = &delay },
	}
}

// Errors sets what an ordinary error means. Default: [ErrorsTemporary]. Kopf: errors=.
func Errors(mode ErrorsMode) LimitOption {
	o := option{name: "Errors", set: func(h *handlers.Handler) { h.Policy.Errors = mode }}
	switch mode {
	case ErrorsTemporary, ErrorsPermanent, ErrorsIgnored:
	default:
		o.err = fmt.Errorf("Errors(%d): it must be ErrorsTemporary, ErrorsPermanent or ErrorsIgnored", mode)
	}
	return o
}

// Optional makes a delete handler ask for no finalizer. It is called only where something else of the operator holds
// the object: another delete handler, which is not optional, a daemon or a timer. Objects that nothing holds go without
// it. Kopf: optional=True.
func Optional() DeleteOption {
	return option{name: "Optional", set: func(h *handlers.Handler) { h.Optional = true }}
}

// EvenIfDeleted makes a resume handler take part in the deletion of an object that was being deleted when the operator
// started. Kopf: deleted=True.
func EvenIfDeleted() ResumeOption {
	return option{name: "EvenIfDeleted", set: func(h *handlers.Handler) { h.EvenIfDeleted = true }}
}
