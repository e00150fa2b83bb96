package registry

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
)

// SetupStage is the progress of an operator. A handler that is registered too late would never be called.
type SetupStage int

// The stages, in their order.
const (
	Registering SetupStage = iota
	Starting
	SetUp
	Running
)

// HandlerRegistry holds the registrations of one operator. The methods that register handlers and memos lock it. The
// others do not: the operator holds the lock while it uses the registrations, and they do not change any more after
// the set-up.
type HandlerRegistry struct {
	sync.Mutex

	// Location is where the operator was made; empty for one that was not made by New.
	Location string
	// Log returns the logger of the operator.
	Log func() logr.Logger
	// Stage decides whether handlers can still be registered.
	Stage SetupStage
	// Entries are the handlers of objects, Activities those of activities, in the order of registration.
	Entries    []HandlerEntry
	Activities []*handlers.Handler
	// Scheme is the last one that has the types of the operator.
	Scheme *runtime.Scheme
	// Mistakes are those of all calls so far.
	Mistakes SetupErrors

	memos   []func(types.UID)
	indexes map[any]*indexes.Index
}

// Register adds a handler; too late, it is an error.
func (r *HandlerRegistry) Register(e HandlerEntry) {
	late := fmt.Errorf("%s(%q): registered after the operator was set up, so it is never called", e.Verb, e.Handler.ID)
	r.IfOpen(e.Handler.Location, late, func() { r.Entries = append(r.Entries, e) })
}

// RegisterActivity adds a handler of an activity, and keeps the problems of the call.
func (r *HandlerRegistry) RegisterActivity(verb string, h *handlers.Handler, problems []error) {
	r.Lock()
	defer r.Unlock()
	if r.Stage != Registering {
		problems = append(problems, errors.New("registered after the operator was set up, so it is never called"))
	}
	for _, other := range r.Activities {
		if other.ID == h.ID && other.Activity == h.Activity {
			problems = append(problems, fmt.Errorf(
				"the id is taken at %s; give every handler of a verb its own", other.Location,
			))
		}
	}
	for _, problem := range problems {
		r.keep(h.Location, fmt.Errorf("%s(%q): %w", verb, h.ID, problem))
	}
	r.Activities = append(r.Activities, h)
}

// IfOpen calls add, or keeps the error if the operator is set up already.
func (r *HandlerRegistry) IfOpen(where string, late error, add func()) {
	r.Lock()
	defer r.Unlock()
	if r.Stage != Registering {
		r.keep(where, late)
		return
	}
	add()
}

// AddError keeps an error of the user's call for the set-up.
func (r *HandlerRegistry) AddError(where string, err error) {
	r.Lock()
	defer r.Unlock()
	r.keep(where, err)
}

// keep keeps an error for the set-up, or for the start after it. Once the operator runs, the log is all there is.
func (r *HandlerRegistry) keep(where string, err error) {
	r.Mistakes.Add(where, err)
	if r.Stage == Running {
		log := r.Log()
		log.Error(err, "Ignoring a handler that was registered after the start of the operator", "location", where)
	}
}

// Acts reports whether there is a handler of the activity. The operator holds the lock, or is set up.
func (r *HandlerRegistry) Acts(activity string) bool {
	return slices.ContainsFunc(r.Activities, func(h *handlers.Handler) bool { return h.Activity == activity })
}

// Admits reports whether there are handlers of admission.
func (r *HandlerRegistry) Admits() bool {
	return slices.ContainsFunc(r.Entries, func(e HandlerEntry) bool { return Admits(e.Handler) })
}

// IndexOf returns the index that was registered under the key before, or registers this one.
func (r *HandlerRegistry) IndexOf(key any, index *indexes.Index) *indexes.Index {
	if former, ok := r.indexes[key]; ok {
		return former
	}
	if r.indexes == nil {
		r.indexes = map[any]*indexes.Index{}
	}
	r.indexes[key] = index
	return index
}

// AddMemo adds a memo, which has to forget objects that are gone.
func (r *HandlerRegistry) AddMemo(forget func(types.UID)) {
	r.Lock()
	defer r.Unlock()
	r.memos = append(r.memos, forget)
}

// ForgetMemos returns the function that makes all memos forget an object; nil if there are none.
func (r *HandlerRegistry) ForgetMemos() func(types.UID) {
	memos := r.memos
	if len(memos) == 0 {
		return nil
	}
	return func(uid types.UID) {
		for _, forget := range memos {
			forget(uid)
		}
	}
}

// Valid is false for nil and for the zero value.
func (r *HandlerRegistry) Valid() bool { return r != nil && r.Location != "" }
