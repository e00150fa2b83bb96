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
)

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
func (r *HandlerRegistry) WatchesChildren(of schema.GroupKind, scheme *runtime.Scheme) bool {
	return slices.ContainsFunc(r.Entries, func(e HandlerEntry) bool {
		return Watches(e.Handler) && e.isOf(of, scheme)
	})
}

// WatchesFor reports whether children of the kind, or any objects of it, are watched for the objects of the resource.
func (r *HandlerRegistry) WatchesFor(
	owner discovery.Resource, of schema.GroupKind, scheme *runtime.Scheme,
) (children, objects bool) {
	for _, e := range r.Entries {
		if e.Handler.Owned == nil || Watches(e.Handler) {
			continue
		}
		owners, err := e.Kind.Find(scheme)
		if err != nil || !owners.Matches(owner) {
			continue
		}
		for _, c := range r.Entries {
			if c.Handler == e.Handler.Owned && c.isOf(of, scheme) {
				children, objects = true, objects || c.Handler.Whole
			}
		}
	}
	return children, objects
}
