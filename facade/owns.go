package kopf

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/children"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
)

// childOption is an option of [OnChild].
type childOption interface {
	Option
	childOption()
}

func (option) childOption() {}

// ownsOption is an option of Owns.
type ownsOption func(r *registration)

// OnlyEnsured makes [Selection.Owns] watch only objects with the label <prefix>/parent-uid, which [Change.Ensure] sets.
// [OnChild] and [WaitFor] do not see others. It has no effect if the kind is watched otherwise, too.
func OnlyEnsured() ownsOption { return func(r *registration) { r.onlyEnsured = true } }

// Owns watches children of one kind, given by an empty object: objects with an owner reference to a selected object,
// and those declared by [Change.Ensure]. The latter are restored if other clients edit or delete them, without a call
// of the handler. Kopf: none.
//
//	dbs.Owns(&appsv1.Deployment{})
//	kopf.OnChild(dbs, "availability", showAvailability)
//
// The operator needs the verbs list and watch. Missing permissions or kinds are logged and retried. See
// docs/children.md.
func (s Selection[T]) Owns(child client.Object, opts ...ownsOption) {
	s.watch("Owns", child, opts...)
}

// Watches watches a kind so that [WaitFor] can wait for any object of it. It restores children as Owns does. All
// objects of the kind in the operator's namespaces are kept in memory. Kopf: none.
func (s Selection[T]) Watches(object client.Object) {
	s.watch("Watches", object, func(r *registration) { r.handler.Whole = true })
}

// watch watches the kind of the object for the selection.
func (s Selection[T]) watch(verb string, child client.Object, opts ...ownsOption) {
	where := location()
	if s.kind == nil || !s.kind.op.valid() {
		s.kind.addError(fmt.Errorf("%s(%T): the selection is empty: make it with kopf.For", verb, child))
		return
	}
	op := s.kind.op
	objects := For(op, child)
	if objects.kind.find == nil || s.kind.find == nil {
		return
	}
	id := fmt.Sprintf("%s(%T) at %s", verb, child, where)
	owning := &handlers.Handler{ID: id, Family: handlers.Owning, Location: where}
	owning.Owned = owning
	watched := registration{kind: objects.kind, verb: verb, handler: owning}
	for _, opt := range opts {
		if opt == nil {
			s.kind.addError(fmt.Errorf("%s(%T): an option is nil: leave it out", verb, child))
			continue
		}
		opt(&watched)
	}
	op.register(watched)
	op.register(registration{
		kind: s.kind, verb: verb, child: reflect.TypeOf(child),
		handler: &handlers.Handler{ID: id, Family: handlers.Tending, Owned: owning, Location: where},
	})
}

// demandLabels restricts watches with OnlyEnsured to the label of children. The label depends on the settings, which a
// startup handler may change.
func (op *Operator) demandLabels() {
	key := (&children.Keeper{Prefix: op.settings.values.Persistence.AnnotationPrefix}).Label()
	for _, r := range op.registrations {
		if !r.onlyEnsured {
			continue
		}
		if exists, err := labels.NewRequirement(key, selection.Exists, nil); err == nil { // the prefix is checked
			r.handler.Labels = labels.NewSelector().Add(*exists)
		}
	}
}

// watches reports whether the handler only makes the operator watch a kind.
func watches(h *handlers.Handler) bool { return h.Owned == h }

// owns reports whether any children are watched.
func (op *Operator) owns() bool {
	return slices.ContainsFunc(op.registrations, func(r registration) bool {
		return watches(r.handler)
	})
}

// watchesChildren reports whether children of the kind are watched.
func (op *Operator) watchesChildren(of schema.GroupKind) bool {
	return slices.ContainsFunc(op.registrations, func(r registration) bool {
		return watches(r.handler) && r.isOf(of, op.filled)
	})
}

// watchesFor reports whether children of the kind, or any objects of it, are watched for the objects of the resource.
func (op *Operator) watchesFor(owner discovery.Resource, of schema.GroupKind) (children, objects bool) {
	for _, r := range op.registrations {
		if r.handler.Owned == nil || watches(r.handler) {
			continue
		}
		owners, err := r.kind.find(op.filled)
		if err != nil || !owners.Matches(owner) {
			continue
		}
		for _, c := range op.registrations {
			if c.handler == r.handler.Owned && c.isOf(of, op.filled) {
				children, objects = true, objects || c.handler.Whole
			}
		}
	}
	return children, objects
}

// isOf reports whether the registration is for a kind that was given by an object.
func (r registration) isOf(kind schema.GroupKind, scheme *runtime.Scheme) bool {
	selector, err := r.kind.find(scheme)
	return err == nil && selector.Group.Text == kind.Group && selector.Kind == kind.Kind
}

// owned returns the children of the operator's objects, or nil if none are watched.
func (op *Operator) owned() *owned.Children {
	if op.clients.children == nil {
		return nil
	}
	return op.clients.children.Owned
}
