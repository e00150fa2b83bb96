package kopf

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

// Option is an option of any verb.
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

// narrowOptions is an option of each of the verbs for one reason.
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

// storingOption is an option of the verbs that store something under the id of the handler: those for changes, and
// those in the background.
type storingOption interface {
	changeOption
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

// subOption is an option of sub-handlers: those of OnUpdate, and After and AfterFinished.
type subOption interface {
	Option
	updateOrSubOption()
}

// watchEventOption is an option of OnEvent.
type watchEventOption interface {
	Option
	watchEventOption()
}

// option is in all families. The type that its constructor returns decides which verbs accept it.
type option struct {
	name    string       // as the user wrote it, without arguments
	family  reflect.Type // the returned interface; in JoinOptions, it decides which verbs accept the option
	set     func(*handlers.Handler)
	err     error    // why it is wrong
	parts   []Option // of JoinOptions
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
func (option) watchEventOption()  {}

// Retries limits the calls for one cause; then the handler fails permanently. Default: no limit. Kopf: retries=.
func Retries(n int) limitOption {
	var err error
	if n < 1 {
		err = fmt.Errorf("Retries(%d): it counts the calls, so it must be at least 1", n)
	}
	return optionOf[limitOption]("Retries", err, func(h *handlers.Handler) { h.Policy.Retries = &n })
}

// Timeout fails a handler permanently after this time since it was first due, and cancels a running call with
// [ErrTimeout]. Default: none; then a call that hangs occupies a worker. Kopf: timeout=.
func Timeout(limit time.Duration) limitOption {
	return optionOf[limitOption]("Timeout", defaults.CheckPositive("Timeout", limit), func(h *handlers.Handler) {
		h.Policy.Timeout = &limit
	})
}

// Backoff sets the delay after an ordinary error. Default: that of [ExecutionSettings], 60 seconds. Kopf: backoff=.
func Backoff(delay time.Duration) limitOption {
	return optionOf[limitOption]("Backoff", defaults.CheckDelay("Backoff", delay), func(h *handlers.Handler) {
		h.Policy.Backoff = &delay
	})
}

// Errors sets the meaning of an ordinary error. Default: [ErrorsTemporary]. Kopf: errors=.
func Errors(mode ErrorsMode) limitOption {
	var err error
	switch mode {
	case ErrorsTemporary, ErrorsPermanent, ErrorsIgnored:
	default:
		err = fmt.Errorf("Errors(%d): it must be ErrorsTemporary, ErrorsPermanent or ErrorsIgnored", mode)
	}
	return optionOf[limitOption](
		"Errors",
		err,
		func(h *handlers.Handler) { h.Policy.Errors = handlers.ErrorsMode(mode) },
	)
}

// Optional adds no finalizer for OnDelete, Daemon or Timer. If nothing else holds the object, a delete handler is
// called at most once, after the object is gone. See docs/deletion.md. Kopf: optional=True.
func Optional() finalizerOption {
	return optionOf[finalizerOption]("Optional", nil, func(h *handlers.Handler) { h.Optional = true })
}

// HoldOnFailure keeps the object if its delete handler fails permanently, until an edit calls the handler again. See
// docs/deletion.md. Kopf: none.
func HoldOnFailure() deleteOption {
	return optionOf[deleteOption]("HoldOnFailure", nil, func(h *handlers.Handler) { h.HoldOnFailure = true })
}

// EvenIfDeleted calls a resume handler also for objects that are being deleted. Kopf: deleted=True.
func EvenIfDeleted() resumeOption {
	return optionOf[resumeOption]("EvenIfDeleted", nil, func(h *handlers.Handler) { h.EvenIfDeleted = true })
}

// FormerIDs renames a handler: it takes over the unfinished progress, the result and the children of former ids. The
// present id takes precedence. A former id is given as the id was, without the field. See docs/renaming.md. Kopf: none.
func FormerIDs(ids ...string) storingOption {
	ids = slices.Clone(ids)
	var wrong []error
	if len(ids) == 0 {
		wrong = append(wrong, errors.New("FormerIDs(): give the former ids"))
	}
	for _, id := range ids {
		if err := keys.ValidateID(id); err != nil {
			wrong = append(wrong, fmt.Errorf("FormerIDs(%q): %w", id, err))
		}
	}
	return optionOf[storingOption]("FormerIDs", errors.Join(wrong...), func(h *handlers.Handler) { h.FormerIDs = ids })
}

// joinedOption is an option of every verb.
type joinedOption interface {
	filterOption
	activityOption
	childOption
}

// JoinOptions joins options to share them. Options beside it override those in it.
//
//	patient := kopf.JoinOptions(kopf.Retries(10), kopf.Timeout(time.Hour))
func JoinOptions(opts ...Option) joinedOption {
	return inFamily[joinedOption](option{name: "JoinOptions", parts: slices.Clone(opts)})
}

// choice is the options given to a verb, and the families that the verb accepts: On accepts several.
type choice struct {
	given []Option
	takes []reflect.Type
	whose string // for messages
}

// asOptions makes options of one family those of any.
func asOptions[O Option](opts []O) choice {
	wide := make([]Option, 0, len(opts))
	for _, opt := range opts {
		wide = append(wide, opt)
	}
	return choice{given: wide, takes: []reflect.Type{reflect.TypeFor[O]()}, whose: "this verb"}
}

// resolve returns the effective options. Those inside of JoinOptions come first, so that the others override them. An
// option twice in one place is an error: the intent is unclear.
func (c choice) resolve() (chosen []option, problems []error) {
	var own []option
	for _, opt := range c.given {
		o, ok := opt.(option)
		switch {
		case !ok:
			problems = append(problems, fmt.Errorf("%T is not an option of package kopf", opt))
		case o.set == nil:
			parts, wrong := choice{o.parts, c.takes, c.whose}.resolve()
			chosen, problems = append(chosen, parts...), append(problems, wrong...)
		case !slices.ContainsFunc(c.takes, o.isFor):
			problems = append(problems, fmt.Errorf("%s is not an option of %s: leave it out", o.name, c.whose))
		default:
			own = append(own, o)
		}
	}
	for i, o := range own {
		switch {
		case o.err != nil:
			problems = append(problems, o.err)
		case slices.ContainsFunc(own[:i], func(other option) bool { return other.name == o.name }):
			problems = append(problems, fmt.Errorf("%s is given twice: keep one", o.name))
		default:
			overruled := func(other option) bool { return other.name == o.name }
			chosen = append(slices.DeleteFunc(chosen, overruled), o)
		}
	}
	return chosen, problems
}

// isFor reports whether verbs that accept a family accept the option.
func (o option) isFor(family reflect.Type) bool {
	return o.family != nil && o.family.Implements(family)
}

// applyOptions applies the options to the handler, and returns the effective ones.
func applyOptions(h *handlers.Handler, c choice) (chosen []option, problems []error) {
	chosen, problems = c.resolve()
	for _, o := range chosen {
		o.set(h)
	}
	return chosen, problems
}
