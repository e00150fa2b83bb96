package kit

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Hooks are the hooks of the test kit in one run of an operator. Each can be nil.
type Hooks struct {
	// Observer observes all attempts of handlers.
	Observer handlers.Observer
	// Webhooks replace those of the cluster.
	Webhooks *Webhooks
}

// Webhooks take the place of the server, the certificate and the managed configurations of an operator: facadetest
// answers admission reviews without a port or a certificate.
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

// Into returns a context with the hooks.
func Into(ctx context.Context, h Hooks) context.Context { return context.WithValue(ctx, key{}, h) }

// From returns the hooks of the context, empty ones if there are none.
func From(ctx context.Context) Hooks {
	h, _ := ctx.Value(key{}).(Hooks)
	return h
}
