package kopf

import (
	"context"
	"fmt"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// OnChild registers a handler of the selected objects that is called for each child at start, with [WatchEventListed],
// and after each change of the child. It needs [Selection.Owns] before. For [Unstructured], it handles all kinds owned
// as unstructured objects. Kopf: none.
//
// Writes by [Change.Ensure] do not cause a call. Calls for one object are sequential, after the handlers of its
// changes. Deletions during a restart or pause are not reported.
//
// Errors are retried as in [ChangeFunc], with the newest state; after a permanent error, at the next change of the
// child.
func OnChild[T, C client.Object](
	s Selection[T], id string, fn func(ctx context.Context, e *ChildEvent[T, C]) error, opts ...childOption,
) {
	h := handlers.Handler{ID: id, Family: handlers.Tending}
	chosen, ok := prepare(s, &h, "OnChild", fn == nil, asOptions(opts), nil)
	if !ok {
		return
	}
	kinds := s.kind.Registry.OwnedTypes(s.kind, reflect.TypeFor[C]())
	if len(kinds) == 0 {
		s.kind.AddError(fmt.Errorf("OnChild(%q): children of the Go type %s are not watched: call Owns for an empty "+
			"object of this type before", id, reflect.TypeFor[C]()))
		return
	}
	children := codec.New[C](reflect.TypeFor[C]().Elem())
	if err := addChildFilter(&h, children, chosen); err != nil {
		s.kind.AddError(fmt.Errorf("OnChild(%q): %w", id, err))
		return
	}
	setFunction(&h, fn)
	said := &mistakes{}
	h.Call = func(ctx context.Context, call *handlers.Invocation) error {
		child, err := children.Decode(call.Child)
		if err != nil {
			return Permanent(fmt.Errorf("decoding the child: %w", err))
		}
		c, err := s.newChange(ctx, call, said)
		if err != nil {
			return err
		}
		return c.end(fn(ctx, &ChildEvent[T, C]{
			Type: WatchEventType(call.Cause.Type), Child: child, Object: c.Object, ID: c.ID, Retry: c.Retry,
			Client: c.Client, APIReader: c.APIReader, change: c,
		}))
	}
	for _, owning := range kinds {
		own := h
		own.Owned = owning
		s.kind.Registry.Register(registry.HandlerEntry{Kind: s.kind, Verb: "OnChild", Handler: &own})
	}
}

// WhenChild restricts a handler of [OnChild] to children for which the function returns true. Filters of the selection
// apply to the owner. Kopf: none.
func WhenChild[C client.Object](matches func(ctx context.Context, child C) bool) childOption {
	return matchesOption[childOption]("WhenChild", matches, matches == nil)
}

// addChildFilter turns WhenChild into a filter of the handler.
func addChildFilter[C client.Object](h *handlers.Handler, of *codec.Codec[C], chosen []option) error {
	matches, given, err := matcherOf[func(ctx context.Context, child C) bool](chosen)
	if !given {
		return err
	}
	h.Wants = func(ctx context.Context, raw map[string]any) (bool, error) {
		child, err := of.Decode(raw)
		if err != nil {
			return false, fmt.Errorf("decoding the child: %w", err)
		}
		return matches(ctx, child), nil
	}
	return nil
}
