package registry

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
)

// SetupStage is the stage of an operator between registration and run. Handlers that are registered too late would
// never be called.
type SetupStage int

// The stages, in their order.
const (
	// Registering accepts handlers. Starting follows in a program: the startup handlers are running, and the manager
	// does not exist yet. SetUp follows the set-up with a manager, and Running the start of the manager.
	Registering SetupStage = iota
	Starting
	SetUp
	Running
)

// HandlerRegistry holds the registrations of one operator. The methods that verbs call to add something lock it, and so
// does OwnedTypes. The caller of any other method holds the lock, or calls it after the set-up, when the registrations
// no longer change.
type HandlerRegistry struct {
	sync.Mutex

	// Location is the place of the call of New; it is empty for the zero value of an operator.
	Location string
	// Log returns the logger of the operator. It is a function because the logger may be set after New.
	Log func() logr.Logger
	// Stage decides whether handlers can be registered.
	Stage SetupStage
	// Entries are the handlers of objects, and Activities those of activities, in the order of registration.
	Entries    []HandlerEntry
	Activities []*handlers.Handler
	// Scheme is the last scheme to which the types of the operator were added.
	Scheme *runtime.Scheme
	// Mistakes are the errors of all registrations so far.
	Mistakes SetupErrors

	// memoForgetters remove the values of an object. The keys of indexes identify registrations of one function under
	// one id.
	memoForgetters []func(types.UID)
	indexes        map[any]*indexes.ObjectIndex
}

// RegisterHandler adds a handler. After the set-up, it records an error instead.
func (r *HandlerRegistry) RegisterHandler(e HandlerEntry) {
	late := fmt.Errorf("%s(%q): registered after the operator was set up, so it is never called", e.Verb, e.Handler.ID)
	r.RunIfOpen(e.Handler.Location, late, func() { r.Entries = append(r.Entries, e) })
}

// RegisterActivity adds a handler of an activity, and records the problems of the call.
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
		r.keepError(h.Location, fmt.Errorf("%s(%q): %w", verb, h.ID, problem))
	}
	r.Activities = append(r.Activities, h)
}

// RunIfOpen calls add under the lock, or records the error late if the operator is already set up.
func (r *HandlerRegistry) RunIfOpen(where string, late error, add func()) {
	r.Lock()
	defer r.Unlock()
	if r.Stage != Registering {
		r.keepError(where, late)
		return
	}
	add()
}

// AddError records an error of a user's call.
func (r *HandlerRegistry) AddError(where string, err error) {
	r.Lock()
	defer r.Unlock()
	r.keepError(where, err)
}

// keepError records an error for the set-up, or for the start after it. In a running operator, the error can only be
// logged.
func (r *HandlerRegistry) keepError(where string, err error) {
	r.Mistakes.AddAt(where, err)
	if r.Stage == Running {
		log := r.Log()
		log.Error(err, "Ignoring a handler that was registered after the start of the operator", "location", where)
	}
}

// HasActivityHandlers reports whether there is a handler of the activity.
func (r *HandlerRegistry) HasActivityHandlers(activity string) bool {
	return slices.ContainsFunc(r.Activities, func(h *handlers.Handler) bool { return h.Activity == activity })
}

// HasAdmissionHandlers reports whether there are admission handlers.
func (r *HandlerRegistry) HasAdmissionHandlers() bool {
	return slices.ContainsFunc(r.Entries, func(e HandlerEntry) bool { return IsAdmissionHandler(e.Handler) })
}

// FindOrAddIndex returns the index that is registered under the key, or registers this one.
func (r *HandlerRegistry) FindOrAddIndex(key any, index *indexes.ObjectIndex) *indexes.ObjectIndex {
	r.Lock()
	defer r.Unlock()
	if former, ok := r.indexes[key]; ok {
		return former
	}
	if r.indexes == nil {
		r.indexes = map[any]*indexes.ObjectIndex{}
	}
	r.indexes[key] = index
	return index
}

// AddMemo adds a memo. The engine calls forget for each object that is gone.
func (r *HandlerRegistry) AddMemo(forget func(types.UID)) {
	r.Lock()
	defer r.Unlock()
	r.memoForgetters = append(r.memoForgetters, forget)
}

// MemoForgetter returns a function that removes the values of an object from all memos; nil without memos.
func (r *HandlerRegistry) MemoForgetter() func(types.UID) {
	memos := r.memoForgetters
	if len(memos) == 0 {
		return nil
	}
	return func(uid types.UID) {
		for _, forget := range memos {
			forget(uid)
		}
	}
}

// IsValid returns false for nil and for the zero value.
func (r *HandlerRegistry) IsValid() bool { return r != nil && r.Location != "" }
