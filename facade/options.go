package kopf

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/keys"
)

// Option is an option of any verb.
type Option interface{ anyOption() }

// onOption is an option of On, which takes the options of all verbs for changes.
type onOption interface {
	Option
	onOption()
}

// filterOption is an option of all verbs with objects: for changes, raw events, indices, background functions and
// admission.
//
//nolint:interfacebloat // a family of options is all of the families that it is for
type filterOption interface {
	changeOption
	watchOption
	backgroundOption
	admissionOption
}

// watchOption is an option of OnEvent and NewIndex.
type watchOption interface {
	watchEventOption
	indexOption
}

// changeOption is an option of all verbs for changes, OnCreate, OnUpdate, OnDelete, OnResume, OnField and On, and of
// sub-handlers.
type changeOption interface {
	changeOption()
	narrowOptions
}

// narrowOptions is an option of all verbs for one reason.
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

// storingOption is an option of the verbs that store data under the id of the handler: for changes and background
// functions.
type storingOption interface {
	changeOption
	backgroundOption
}

// resumeOption is an option of OnResume.
type resumeOption interface {
	onOption
	resumeOption()
}

// updateOption is an option of the verbs that compare an old with a new value: OnUpdate, OnField and sub-handlers.
type updateOption interface {
	onOption
	subOption
	updateOption()
}

// subOption is an option of sub-handlers: the options of OnUpdate, After and AfterFinished.
type subOption interface {
	Option
	updateOrSubOption()
}

// watchEventOption is an option of OnEvent.
type watchEventOption interface {
	Option
	watchEventOption()
}

// admissionOption is an option of Validate and Mutate.
type admissionOption interface {
	Option
	admissionOption()
}

// activityOption is an option of OnStartup, OnCleanup, OnLogin and OnProbe.
type activityOption interface {
	Option
	activityOption()
}

// daemonOption is an option of Daemon.
type daemonOption interface {
	Option
	daemonOption()
}

// timerOption is an option of Timer.
type timerOption interface {
	Option
	timerOption()
}

// backgroundOption is an option of both Daemon and Timer.
type backgroundOption interface {
	daemonOption
	timerOption
}

// indexOption is an option of NewIndex.
type indexOption interface {
	Option
	indexOption()
}

// childOption is an option of [OnChild].
type childOption interface {
	Option
	childOption()
}

// limitOption is an option of all verbs with attempts: for changes, background functions, indices, activities and
// children.
//
//nolint:interfacebloat // a family of options is all of the families that it is for
type limitOption interface {
	changeOption
	backgroundOption
	indexOption
	activityOption
	childOption
}

// option implements all option interfaces. The return type of its constructor decides which verbs accept it, so that a
// wrong option does not compile.
type option struct {
	name        string                  // of the constructor, for messages and to find repetitions
	family      reflect.Type            // the returned interface; inside of JoinOptions, the compiler cannot check it
	set         func(*handlers.Handler) // nil for JoinOptions
	err         error                   // of the arguments; the verb reports it
	parts       []Option                // of JoinOptions
	userPattern any                     // the pattern for the handler's field, as the user wrote it
	jsonPattern any                     // the same in JSON form; nil for presences and functions
	predicate   any                     // the function of WhenChange and similar options
}

// optionOf returns an option of the family O, which is the return type of its constructor.
func optionOf[O Option](name string, err error, set func(*handlers.Handler)) O {
	return withFamily[O](option{name: name, err: err, set: set})
}

// withFamily records the family of the option, and converts it.
func withFamily[O Option](o option) O {
	o.family = reflect.TypeFor[O]()
	returned, _ := any(o).(O) // always succeeds: option implements all families
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
func (option) activityOption()    {}
func (option) admissionOption()   {}
func (option) daemonOption()      {}
func (option) timerOption()       {}
func (option) indexOption()       {}
func (option) childOption()       {}

// Retries limits the calls for one cause; then the handler fails permanently. Default: no limit. Kopf: retries=.
func Retries(n int) limitOption {
	// Options do not return errors. The verb reports err together with its other problems.
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
	return withFamily[joinedOption](option{name: "JoinOptions", parts: slices.Clone(opts)})
}

// verbOptions holds the options of a call of a verb. The options are of the families takes: On accepts several.
type verbOptions struct {
	options          []Option
	acceptedFamilies []reflect.Type
	verbDescription  string // describes the verb in messages
}

// asOptions returns the options of a verb that accepts one family.
func asOptions[O Option](opts []O) verbOptions {
	wide := make([]Option, 0, len(opts))
	for _, opt := range opts {
		wide = append(wide, opt)
	}
	return verbOptions{options: wide, acceptedFamilies: []reflect.Type{reflect.TypeFor[O]()},
		verbDescription: "this verb"}
}

// resolveOptions returns the effective options. Options in JoinOptions come first, so that options beside it override
// them. The same option twice in one place is an error, because the intent is unclear.
func (c verbOptions) resolveOptions() (chosen []option, problems []error) {
	var own []option
	for _, opt := range c.options {
		o, ok := opt.(option)
		switch {
		case !ok:
			problems = append(problems, fmt.Errorf("%T is not an option of package kopf", opt))
		// Options in JoinOptions have lost their static types, so their families are checked here.
		case o.set == nil:
			parts, wrong := verbOptions{o.parts, c.acceptedFamilies, c.verbDescription}.resolveOptions()
			chosen, problems = append(chosen, parts...), append(problems, wrong...)
		case !slices.ContainsFunc(c.acceptedFamilies, o.fitsFamily):
			problems = append(problems, fmt.Errorf("%s is not an option of %s: leave it out", o.name,
				c.verbDescription))
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
			// An option beside JoinOptions replaces the one inside.
			overruled := func(other option) bool { return other.name == o.name }
			chosen = append(slices.DeleteFunc(chosen, overruled), o)
		}
	}
	return chosen, problems
}

// fitsFamily reports whether a verb that accepts the family accepts the option.
func (o option) fitsFamily(family reflect.Type) bool {
	return o.family != nil && o.family.Implements(family)
}

// applyOptions applies the options to the handler, and returns the effective options.
func applyOptions(h *handlers.Handler, c verbOptions) (chosen []option, problems []error) {
	chosen, problems = c.resolveOptions()
	for _, o := range chosen {
		o.set(h)
	}
	return chosen, problems
}

// quoteAll returns the arguments as Go literals for messages.
func quoteAll(texts []string) string {
	all := make([]string, 0, len(texts))
	for _, text := range texts {
		all = append(all, strconv.Quote(text))
	}
	return strings.Join(all, ", ")
}
