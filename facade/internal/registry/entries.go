package registry

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// SelectedKind is the kind of a selection. It is resolved with the scheme, because a Go type alone does not have a
// kind.
type SelectedKind struct {
	// Registry is that of the operator; nil or empty for a selection without an operator.
	Registry *HandlerRegistry
	// Location is where the selection was made.
	Location string
	// Find is nil if the selection itself was an error: nothing can be registered for it.
	Find func(*runtime.Scheme) (discovery.Selector, error)
	// CheckField returns an error if the Go type cannot have the field.
	CheckField func(diff.Path) error
}

// AddError keeps an error of the user's call. A nil kind is that of a selection that package facade has not made.
func (k *SelectedKind) AddError(err error) {
	if k == nil || !k.Registry.Valid() {
		AddOwnerless(err)
		return
	}
	k.Registry.AddError(Location(), err)
}

// HandlerEntry is one handler of one kind of objects, before the kind is resolved.
type HandlerEntry struct {
	Kind *SelectedKind
	// Verb and the kind are the scope in which the id is unique.
	Verb    string
	Handler *handlers.Handler
	// Child is the Go type of the children that Owns was called for.
	Child reflect.Type
	// OnlyEnsured has an owning handler watch only children that Ensure has declared.
	OnlyEnsured bool
}

// isOf reports whether the entry is for a kind that was given by an object.
func (e HandlerEntry) isOf(kind schema.GroupKind, scheme *runtime.Scheme) bool {
	selector, err := e.Kind.Find(scheme)
	return err == nil && selector.Group.Text == kind.Group && selector.Kind == kind.Kind
}

// ResolvedEntry is an entry whose kind is known.
type ResolvedEntry struct {
	HandlerEntry

	Selector discovery.Selector
}

// Admits reports whether the handler is one of admission: it keeps nothing on objects, and needs none.
func Admits(h *handlers.Handler) bool { return h.Family == handlers.Admitting }

// Watches reports whether the handler only makes the operator watch a kind.
func Watches(h *handlers.Handler) bool { return h.Owned == h }

// Reports is true for handlers of [NewReporter].
func Reports(h *handlers.Handler) bool { return h.Family == handlers.Reporting }

// keepsNothing reports whether the handler is called for children, or never: it has no record.
func keepsNothing(h *handlers.Handler) bool { return h.Owned != nil }

// DemandLabel restricts watches with OnlyEnsured to the label of children. The label depends on the settings, which a
// startup handler may change.
func (r *HandlerRegistry) DemandLabel(key string) {
	for _, e := range r.Entries {
		if !e.OnlyEnsured {
			continue
		}
		if exists, err := labels.NewRequirement(key, selection.Exists, nil); err == nil { // the prefix is checked
			e.Handler.Labels = labels.NewSelector().Add(*exists)
		}
	}
}

// Owns reports whether any children are watched.
func (r *HandlerRegistry) Owns() bool {
	return slices.ContainsFunc(r.Entries, func(e HandlerEntry) bool { return Watches(e.Handler) })
}

// OwnedTypes returns the watches that Owns has registered for children of the Go type: one for a type of the scheme,
// one for each kind for unstructured objects.
func (r *HandlerRegistry) OwnedTypes(owner *SelectedKind, child reflect.Type) (all []*handlers.Handler) {
	r.Lock()
	defer r.Unlock()
	for _, e := range r.Entries {
		if e.Kind == owner && e.Verb == "Owns" && e.Child == child {
			all = append(all, e.Handler.Owned)
		}
	}
	return all
}

// WatchesChildren reports whether children of the kind are watched.
func (r *HandlerRegistry) WatchesChildren(of schema.GroupKind) bool {
	return slices.ContainsFunc(r.Entries, func(e HandlerEntry) bool {
		return Watches(e.Handler) && e.isOf(of, r.Scheme)
	})
}

// WatchesFor reports whether children of the kind, or any objects of it, are watched for the objects of the resource.
func (r *HandlerRegistry) WatchesFor(owner discovery.Resource, of schema.GroupKind) (children, objects bool) {
	for _, e := range r.Entries {
		if e.Handler.Owned == nil || Watches(e.Handler) {
			continue
		}
		owners, err := e.Kind.Find(r.Scheme)
		if err != nil || !owners.Matches(owner) {
			continue
		}
		for _, c := range r.Entries {
			if c.Handler == e.Handler.Owned && c.isOf(of, r.Scheme) {
				children, objects = true, objects || c.Handler.Whole
			}
		}
	}
	return children, objects
}
