package kopf

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/children"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
)

// WaitFor waits until another object satisfies the function. The handler must return the error. The kind must be
// watched by [Selection.Owns] for children, or [Selection.Watches] for any object. The default namespace is that of the
// handled object. Kopf: none.
//
//	return kopf.WaitFor(c, server, func(s *appsv1.Deployment) bool {
//		return s.Status.ObservedGeneration >= s.Generation && s.Status.AvailableReplicas > 0
//	}, 10*time.Minute)
//
// The handler ends and later runs again from its start. The function must have no effects. The timeout counts from the
// first wait for this object and change, also across restarts and errors. [Retries] does not count waits; [Timeout]
// still applies.
//
// # Errors
//
// A timeout is a permanent error that wraps [ErrWaitTimeout]; wrap it in [Temporary] to wait again. Invalid arguments
// and kinds that are not watched are permanent errors.
func WaitFor[T, C client.Object](c *Change[T], child C, wanted func(child C) bool, timeout time.Duration) error {
	if c.hasNoCall() {
		return errWithoutOperator
	}
	w, err := newWait(c, child, wanted, timeout)
	if err != nil {
		return fmt.Errorf("waiting for a %T for object %s in handler %q: %w", child, c.objectName(), c.ID, err)
	}
	seen, err := c.cluster.children.EvaluateWait(w, c.objectMetadata().GetNamespace(), c.call.LastWait, timeout)
	switch {
	case err != nil:
		return fmt.Errorf("looking at %s for object %s in handler %q: %w", seen.Description, c.objectName(), c.ID, err)
	case seen.IsSatisfied:
		return nil
	case seen.Pending != nil:
		return seen.Pending
	}
	// The wait is over. Explain the most likely mistake.
	state := "there is no such child with an owner reference to the object, or declared by Ensure; to wait for an " +
		"object that is no child, register Watches"
	switch {
	case w.AllowAnyObject && !seen.Exists:
		state = "there is no such object in the namespaces that the operator serves"
	case seen.Exists:
		state = "it is there, but not as the function wants it at " + registry.CallerLocation()
	}
	return Permanent(fmt.Errorf("waited %s for %s for object %s in handler %q: %s: %w",
		timeout, seen.Description, c.objectName(), c.ID, state, ErrWaitTimeout))
}

// newWait checks the arguments of WaitFor, and returns the wait for the engine. Mistakes are permanent errors, because
// a retry would meet them again.
func newWait[T, C client.Object](
	c *Change[T], child C, wanted func(child C) bool, timeout time.Duration,
) (w owned.ChildWait, err error) {
	switch {
	case c.hasReturned.Load():
		return w, errReturned
	case c.call.Subs == nil:
		return w, Permanent(errors.New("WaitFor is for handlers of changes"))
	}
	if err := children.CheckWait(child, wanted == nil, timeout); err != nil {
		return w, Permanent(err)
	}
	kind, err := apiutil.GVKForObject(child, c.Client.Scheme())
	if err != nil {
		return w, Permanent(fmt.Errorf("finding the kind of a %T: %w; add its type to the scheme", child, err))
	}
	// Without a watch, the handler would never be called when the object changes.
	isWatched, isWhole := false, false
	if c.cluster.watchScopes != nil && c.call.Resource != nil {
		isWatched, isWhole = c.cluster.watchScopes(*c.call.Resource, kind.GroupKind())
	}
	if !isWatched {
		return w, Permanent(fmt.Errorf("objects of kind %s are not watched: register Owns(%[2]s) for children, "+
			"or Watches(%[2]s) for any object, with the selection of the handler",
			kind.GroupKind(), children.ExampleExpression(child)))
	}
	decoder := codec.New[C](reflect.TypeOf(child).Elem())
	namespace := cmp.Or(child.GetNamespace(), c.objectMetadata().GetNamespace())
	return owned.ChildWait{
		Owner: c.objectMetadata().GetUID(), Body: c.call.Cause.Body(), Handler: c.call.Handler,
		Change: c.call.Cause.ChangeFingerprint(), Kind: kind.GroupKind(),
		Namespace: namespace, Name: child.GetName(), AllowAnyObject: isWhole,
		WasReached: func() (bool, error) { return c.hasEnded(kind.GroupKind(), namespace, child.GetName()) },
		IsReached: func(raw map[string]any) (bool, error) {
			object, err := decoder.Decode(raw)
			if err != nil {
				return false, fmt.Errorf("decoding the child: %w", err)
			}
			return wanted(object), nil
		},
	}, nil
}

// hasEnded reports whether an absent child was declared by [UntilDone] and is done: it may be deleted after that. The
// record is in the annotations of the object. While the handler runs, records that are not written yet count, too.
func (c *Change[T]) hasEnded(kind schema.GroupKind, namespace, name string) (done bool, err error) {
	body := c.newestBody()
	if !c.hasReturned.Load() {
		if body, err = c.call.WorkingCopy(); err != nil {
			return false, err
		}
	}
	if done, err = c.cluster.children.IsDone(body, kind, namespace, name); err != nil {
		return false, Permanent(err)
	}
	return done, nil
}

// objectMetadata returns the object as of the start of the call, for its metadata.
func (c *Change[T]) objectMetadata() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: c.call.Cause.Body()}
}
