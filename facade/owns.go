package kopf

import (
	"fmt"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
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
type ownsOption func(r *owning)

// owning holds the options of Owns and Watches.
type owning struct{ onlyEnsured, whole bool }

// OnlyEnsured makes [Selection.Owns] watch only objects with the label <prefix>/parent-uid, which [Change.Ensure] sets.
// [OnChild] and [WaitFor] do not see others. It has no effect if the kind is watched otherwise, too.
func OnlyEnsured() ownsOption { return func(r *owning) { r.onlyEnsured = true } }

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
	s.watch("Watches", object, func(r *owning) { r.whole = true })
}

// watch watches the kind of the object for the selection.
func (s Selection[T]) watch(verb string, child client.Object, opts ...ownsOption) {
	where := registry.Location()
	if s.kind == nil || !s.op.valid() {
		s.kind.AddError(fmt.Errorf("%s(%T): the selection is empty: make it with kopf.For", verb, child))
		return
	}
	op := s.op
	objects := For(op, child)
	if objects.kind.Find == nil || s.kind.Find == nil {
		return
	}
	var chosen owning
	for _, opt := range opts {
		if opt == nil {
			s.kind.AddError(fmt.Errorf("%s(%T): an option is nil: leave it out", verb, child))
			continue
		}
		opt(&chosen)
	}
	id := fmt.Sprintf("%s(%T) at %s", verb, child, where)
	h := &handlers.Handler{ID: id, Family: handlers.Owning, Location: where, Whole: chosen.whole}
	h.Owned = h
	op.registry.Register(registry.HandlerEntry{
		Kind: objects.kind, Verb: verb, Handler: h, OnlyEnsured: chosen.onlyEnsured,
	})
	op.registry.Register(registry.HandlerEntry{
		Kind: s.kind, Verb: verb, Child: reflect.TypeOf(child),
		Handler: &handlers.Handler{ID: id, Family: handlers.Tending, Owned: h, Location: where},
	})
}

// owned returns the children of the operator's objects, or nil if none are watched.
func (op *Operator) owned() *owned.Children {
	if op.clients.children == nil {
		return nil
	}
	return op.clients.children.Owned
}
