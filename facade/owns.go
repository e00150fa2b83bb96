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

// OnlyEnsured has the API server send only objects that were declared by [Change.Ensure], of any handler of the
// operator: those with the label <prefix>/parent-uid. Other objects cost neither traffic nor memory. So children that
// others have made are unknown to OnChild and [WaitFor], and a child that loses the label counts as deleted: its label
// is restored as any other field. It has no effect while other handlers of the operator, or an Owns without the option,
// watch the kind.
func OnlyEnsured() ownsOption { return func(r *registration) { r.onlyEnsured = true } }

// Owns watches the children of the selected objects, those of one kind. The kind is given by an empty object: a type
// of the scheme, or an unstructured object with apiVersion and kind. Kopf: none; controller-runtime: Owns.
//
//	dbs.Owns(&appsv1.Deployment{})
//	kopf.OnChild(dbs, "availability", func(ctx context.Context, e *DeploymentEvent) error {
//		available := e.Child.Status.AvailableReplicas > 0
//		e.Patch(func(db *v1.Database) { db.Status.Available = available })
//		return nil
//	})
//
// where DeploymentEvent is kopf.ChildEvent[*v1.Database, *appsv1.Deployment].
//
// A child that [Change.Ensure] has declared and that is edited or deleted by others is restored, without a call of the
// handler. The delay grows if that happens repeatedly. It is logged, posted as a Kubernetes event about the object, and
// counted by the metric kopf_children_repaired_total.
//
// Children are objects with an owner reference to the object, in its namespace, or in any for a cluster-scoped object;
// and objects that Ensure has declared. The operator needs the verbs list and watch for the kind; while they are
// missing, or the kind does not exist, this is logged and retried. See docs/children.md.
func (s Selection[T]) Owns(child client.Object, opts ...ownsOption) {
	s.watch("Owns", child, opts...)
}

// Watches watches objects of another kind for the handlers of the selection: [WaitFor] can then wait for any of them,
// with or without an owner. The kind is given by an empty object, as for Owns. Kopf: none; controller-runtime: Watches.
//
//	dbs.Watches(&corev1.Secret{})
//	dbs.OnCreate("login", func(ctx context.Context, c *kopf.Change[*v1.Database]) error {
//		login := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: c.Object.Spec.SecretName}}
//		return kopf.WaitFor(c, login, func(s *corev1.Secret) bool { return len(s.Data["password"]) > 0 }, time.Hour)
//	})
//
// All objects of the kind in the operator's namespaces are kept in memory. Watches includes what Owns does for children
// that [Change.Ensure] has declared, and needs the same permissions.
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

// demandLabels has handlers of Owns watch objects with the label of children only, where that is wanted. It depends on
// the settings, which a startup may change.
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

// watches tells whether the handler has a kind watched, and nothing else.
func watches(h *handlers.Handler) bool { return h.Owned == h }

// owns tells whether any children are watched.
func (op *Operator) owns() bool {
	return slices.ContainsFunc(op.registrations, func(r registration) bool {
		return watches(r.handler)
	})
}

// watchesChildren tells whether children of the kind are watched.
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

// isOf tells whether the registration is for a kind that was given by an object.
func (r registration) isOf(kind schema.GroupKind, scheme *runtime.Scheme) bool {
	selector, err := r.kind.find(scheme)
	return err == nil && selector.Group.Text == kind.Group && selector.Kind == kind.Kind
}

// owned are the children of the operator's objects; nil if none are watched.
func (op *Operator) owned() *owned.Children {
	if op.clients.children == nil {
		return nil
	}
	return op.clients.children.Owned
}
