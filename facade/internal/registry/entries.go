package registry

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// SelectedKind is the kind that a selection of the user names. It is resolved by the set-up, because the kind of a Go
// type depends on the scheme of the manager.
type SelectedKind struct {
	// Registry is the registry of the operator; nil or empty for a selection without an operator.
	Registry *HandlerRegistry
	// Location is the place of the user's call that made the selection, in the form file:line.
	Location string
	// Find resolves the kind. It is nil if the selection is invalid: then nothing can be registered for it, and the
	// error is already recorded.
	Find func(*runtime.Scheme) (discovery.Selector, error)
	// CheckField returns an error if the Go type cannot have the field.
	CheckField func(diff.Path) error
}

// AddError records an error of the user's call. The receiver is nil for the zero value of a selection.
func (k *SelectedKind) AddError(err error) {
	if k == nil || !k.Registry.IsValid() {
		AddOwnerless(err)
		return
	}
	k.Registry.AddError(CallerLocation(), err)
}

// HandlerEntry is one registered handler of one kind of objects.
type HandlerEntry struct {
	Kind *SelectedKind
	// Verb is the name of the method that registered the handler. Ids are unique among the handlers with the same verb
	// and kind.
	Verb    string
	Handler *handlers.Handler
	// Child is the Go type of the children; only for entries of Owns and Watches.
	Child reflect.Type
	// OnlyEnsured restricts an owning handler to children with the label that Ensure sets.
	OnlyEnsured bool
}

// isOfKind reports whether the entry is for this kind. It returns false for entries whose kind is known only after
// discovery, such as those that name a resource.
func (e HandlerEntry) isOfKind(kind schema.GroupKind, scheme *runtime.Scheme) bool {
	selector, err := e.Kind.Find(scheme)
	return err == nil && selector.Group.Text == kind.Group && selector.Kind == kind.Kind
}

// ResolvedEntry is an entry with its resolved kind.
type ResolvedEntry struct {
	HandlerEntry

	Selector discovery.Selector
}

// IsAdmissionHandler reports whether the handler reviews admission requests. Such handlers store nothing on objects,
// and do not need watches.
func IsAdmissionHandler(h *handlers.Handler) bool { return h.Family == handlers.Admitting }

// OnlyWatchesChildren reports whether the handler exists only so that the operator watches a kind of children. Such a
// handler is never called.
func OnlyWatchesChildren(h *handlers.Handler) bool { return h.ParentHandler == h }

// ReportsConditions reports whether the handler was made by [NewReporter].
func ReportsConditions(h *handlers.Handler) bool { return h.Family == handlers.Condition }

// hasNoRecord reports whether the handler has no record on objects, because it is called for children or never.
func hasNoRecord(h *handlers.Handler) bool { return h.ParentHandler != nil }

// RequireEnsuredLabel restricts the watches of entries with OnlyEnsured to objects with the label. It runs with each
// plan, because the label depends on settings that a startup handler may change.
func (r *HandlerRegistry) RequireEnsuredLabel(key string) {
	for _, e := range r.Entries {
		if !e.OnlyEnsured {
			continue
		}
		if exists, err := labels.NewRequirement(key, selection.Exists, nil); err == nil { // the prefix is validated
			e.Handler.Labels = labels.NewSelector().Add(*exists)
		}
	}
}

// WatchesAnyChildren reports whether the operator watches any children.
func (r *HandlerRegistry) WatchesAnyChildren() bool {
	return slices.ContainsFunc(r.Entries, func(e HandlerEntry) bool { return OnlyWatchesChildren(e.Handler) })
}

// OwnedTypes returns the owning handlers that Owns has registered for the owner and a Go type of children: one handler
// for a typed object, one per kind for unstructured objects.
func (r *HandlerRegistry) OwnedTypes(owner *SelectedKind, child reflect.Type) (all []*handlers.Handler) {
	r.Lock()
	defer r.Unlock()
	for _, e := range r.Entries {
		if e.Kind == owner && e.Verb == "Owns" && e.Child == child {
			all = append(all, e.Handler.ParentHandler)
		}
	}
	return all
}

// WatchesChildren reports whether the operator watches children of the kind.
func (r *HandlerRegistry) WatchesChildren(of schema.GroupKind) bool {
	return slices.ContainsFunc(r.Entries, func(e HandlerEntry) bool {
		return OnlyWatchesChildren(e.Handler) && e.isOfKind(of, r.Scheme)
	})
}

// WatchesFor reports what the operator watches on behalf of objects of the resource owner: children is true if it
// watches their children of the kind, and objects is true if it watches all objects of the kind.
func (r *HandlerRegistry) WatchesFor(owner discovery.Resource, of schema.GroupKind) (children, objects bool) {
	for _, e := range r.Entries {
		// Owns and Watches register two handlers: an owning one for the kind of the children, and one for the kind of
		// the owner whose Owned field refers to the first. The loop looks for the latter.
		if e.Handler.ParentHandler == nil || OnlyWatchesChildren(e.Handler) {
			continue
		}
		owners, err := e.Kind.Find(r.Scheme)
		if err != nil || !owners.Matches(owner) {
			continue
		}
		for _, c := range r.Entries {
			if c.Handler == e.Handler.ParentHandler && c.isOfKind(of, r.Scheme) {
				children, objects = true, objects || c.Handler.AllowAnyObject
			}
		}
	}
	return children, objects
}
