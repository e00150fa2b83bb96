package inprocess

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Webhooks take the place of the server, the certificate and the managed configurations of an operator.
type Webhooks struct {
	// Server serves the handlers.
	Server webhook.Server
	// Attach reports whether the API server in memory can send reviews to the handlers in the process. It is called if
	// the operator has admission handlers, and may be called again.
	Attach func() bool
	// Announce is called with the webhook configurations as soon as reviews can be answered, and again when they
	// change. The URL of each entry has the path of its handler.
	Announce func(configurations []client.Object)
	// Announced is closed by the first call of Announce.
	Announced <-chan struct{}
}

type key struct{}

// Into returns a context with the webhooks.
func Into(ctx context.Context, w *Webhooks) context.Context { return context.WithValue(ctx, key{}, w) }

// From returns the webhooks of the context; nil if there are none.
func From(ctx context.Context) *Webhooks {
	w, _ := ctx.Value(key{}).(*Webhooks)
	return w
}
