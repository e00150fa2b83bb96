package kopf

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/children"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
)

// Owned is one kind of children of the selected objects, see [Owns]. It is a value and never changes.
type Owned[T, C client.Object] struct {
	owners  Selection[T]
	owning  *handlers.Handler
	codec   *codec.Codec[C]
	filters []func(ctx context.Context, child C) bool
}

// ChildFunc is a function that is called for what happens to a child.
type ChildFunc[T, C client.Object] func(ctx context.Context, e *ChildEvent[T, C]) error

// ChildOption is an option of OnChild.
type ChildOption interface {
	Option
	childOption()
}

func (option) childOption() {}

// OwnsOption is an option of Owns.
type OwnsOption interface{ owns(r *registration) }

type ownsOption func(r *registration)

func (o ownsOption) owns(r *registration) { o(r) }

// OnlyEnsured has the API server send only objects that were declared by [Change.Ensure], of any handler of the
// operator: those with the label <prefix>/parent-uid. Other objects cost neither traffic nor memory. So children that
// others have made are unknown to OnChild and [WaitFor], and a child that loses the label counts as deleted: its label
// is restored as any other field. It has no effect while other handlers of the operator, or an Owns without the option,
// watch the kind.
func OnlyEnsured() OwnsOption { return ownsOption(func(r *registration) { r.onlyEnsured = true }) }

// Owns has children of the selected objects watched, those of one kind, which is given by an empty object: a type of
// the scheme, or an unstructured one with apiVersion and kind. Kopf: none; controller-runtime: Owns.
//
//	deployments := kopf.Owns(dbs, &appsv1.Deployment{})
//	type DeploymentEvent = kopf.ChildEvent[*v1.Database, *appsv1.Deployment]
//	deployments.OnChild("availability", func(ctx context.Context, e *DeploymentEvent) error {
//		available := e.Child.Status.AvailableReplicas > 0
//		e.Patch(func(db *v1.Database) { db.Status.Available = available })
//		return nil
//	})
//
// Of what [Change.Ensure] has declared, what somebody edits or deletes is restored, with a delay that grows if that
// goes on, and without a call of the handler. A line in the log, a Kubernetes event about the object and the metric
// kopf_children_repaired_total tell of it.
//
// Children are objects with an owner reference that has the uid, kind and name of the object, of whatever origin, in
// its namespace, or anywhere for a cluster-scoped object; and those that [Change.Ensure] has declared, in any namespace
// that the operator serves, and outside of namespaces. The label that Ensure sets is not enough. They are kept in one
// cache for each kind, that of the handlers of the kind, if there are any, and are not polled. The operator needs the
// verbs list and watch for the kind; until it has them, or while the kind does not exist, a line in the log says so,
// and it waits. A paused operator watches nothing.
//
// All objects of the kind are watched. While nothing else looks at the kind, only the names and versions are kept of
// objects that have neither the label nor an owner reference to an object of a kind with Owns for it. With
// [OnlyEnsured], they are not even sent.
func Owns[T, C client.Object](owners Selection[T], child C, opts ...OwnsOption) Owned[T, C] {
	return watch("Owns", owners, child, opts...)
}

// Watches has objects of another kind watched for the handlers of the selection: so [WaitFor] can wait for any of them,
// with any owner or without. The kind is given by an empty object, as for [Owns]. Kopf: none; controller-runtime:
// Watches.
//
//	kopf.Watches(dbs, &corev1.Secret{})
//	dbs.OnCreate("login", func(ctx context.Context, c *kopf.Change[*v1.Database]) error {
//		login := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: c.Object.Spec.SecretName}}
//		return kopf.WaitFor(c, login, func(s *corev1.Secret) bool { return len(s.Data["password"]) > 0 }, time.Hour)
//	})
//
// All objects of the kind in the namespaces of the operator are kept in memory as a whole, in one cache with handlers
// of the kind. It includes what Owns does for children that [Change.Ensure] has declared, and needs the same rights.
func Watches[T, C client.Object](selection Selection[T], object C) {
	watch("Watches", selection, object, ownsOption(func(r *registration) { r.handler.Whole = true }))
}

// watch has the kind of the object watched for the owners.
func watch[T, C client.Object](verb string, owners Selection[T], child C, opts ...OwnsOption) Owned[T, C] {
	where := location()
	id := fmt.Sprintf("%s(%T) at %s", verb, child, where)
	s := Owned[T, C]{owners: owners, owning: &handlers.Handler{ID: id, Family: handlers.Owning, Location: where}}
	s.owning.Owned = s.owning
	if owners.kind == nil || !owners.kind.op.valid() {
		owners.kind.addError(fmt.Errorf("kopf.%s(%T): the selection is empty: make it with kopf.For", verb, child))
		return s
	}
	op := owners.kind.op
	objects := For(op, child)
	s.codec = objects.codec
	if objects.kind.find != nil && owners.kind.find != nil {
		watched := registration{kind: objects.kind, verb: verb, handler: s.owning}
		for _, opt := range opts {
			if opt == nil {
				owners.kind.addError(fmt.Errorf("kopf.%s(%T): an option is nil: leave it out", verb, child))
				continue
			}
			opt.owns(&watched)
		}
		op.register(watched)
		op.register(registration{kind: owners.kind, verb: verb, handler: &handlers.Handler{
			ID: id, Family: handlers.Tending, Owned: s.owning, Location: where,
		}})
	}
	return s
}

// When narrows the children down to those for which the function is true, as [Selection.When] does for objects. A child
// for which it is false is not told, whatever happens to it.
func (s Owned[T, C]) When(matches func(ctx context.Context, child C) bool) Owned[T, C] {
	if matches == nil {
		s.owners.kind.addError(errors.New("When: the function is nil: without a condition, leave When out"))
		return s
	}
	s.filters = append(slices.Clip(s.filters), matches)
	return s
}

// wants is the filters as one.
func (s Owned[T, C]) wants(ctx context.Context, raw map[string]any) (bool, error) {
	child, err := s.codec.Decode(raw)
	if err != nil {
		return false, fmt.Errorf("decoding the child: %w", err)
	}
	for _, matches := range s.filters {
		if !matches(ctx, child) {
			return false, nil
		}
	}
	return true, nil
}

// OnChild registers a handler of the owners for what happens to their children of the kind: that one is there, is
// different, or is no more. Kopf: none.
//
// # Flow
//
// It is called for each child when the operator begins to look, with [WatchEventListed], and then when anything about it
// has changed. It is told how the child is by now: quick changes are one call, and of one that is deleted, it gets the
// last state. What [Change.Ensure] has written is not told, and neither is what went while no operator was looking. The
// calls for one object come one at a time, after the handlers of its changes, which are not called for that; those for
// several children in the order of their names. Nothing is remembered on the object: after a restart, and after a
// pause, the children are listed anew.
//
// The selection's filters are about the owner, [Owned.When] is about the child.
//
// # Errors
//
// They mean what they do for handlers of changes, see [ChangeFunc]: after a temporary error, the handler is called
// again, with the child as it is then; after a permanent one, also that of [Retries] or [Timeout], with the next change
// of the child.
func (s Owned[T, C]) OnChild(id string, fn ChildFunc[T, C], opts ...ChildOption) {
	h := handlers.Handler{ID: id, Family: handlers.Tending, Owned: s.owning}
	if _, ok := prepare(s.owners.ChangeSelection, &h, "OnChild", fn == nil, asOptions(opts), nil); !ok ||
		s.codec == nil {
		return
	}
	if len(s.filters) > 0 {
		h.Wants = s.wants
	}
	setFunction(&h, fn)
	said := &mistakes{}
	h.Call = func(ctx context.Context, call *handlers.Invocation) error {
		child, err := s.codec.Decode(call.Child)
		if err != nil {
			return Permanent(fmt.Errorf("decoding the child: %w", err))
		}
		c, err := s.owners.newChange(ctx, call, said)
		if err != nil {
			return err
		}
		return c.end(fn(ctx, &ChildEvent[T, C]{
			Type: WatchEventType(call.Cause.Type), Child: child, Object: c.Object, ID: c.ID, Retry: c.Retry,
			Client: c.Client, APIReader: c.APIReader, change: c,
		}))
	}
	s.owners.kind.op.register(registration{kind: s.owners.kind, verb: "OnChild", handler: &h})
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
