package kit

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Hooks are the hooks of the test kit for one run of an operator. Each field may be nil.
type Hooks struct {
	// Observer receives all attempts of handlers.
	Observer handlers.AttemptObserver
	// Webhooks replace the webhook server of the operator.
	Webhooks *FakeWebhooks
}

// FakeWebhooks replace the webhook server, the certificate and the managed configurations of an operator. With them,
// package facadetest sends admission reviews without a port or a certificate.
type FakeWebhooks struct {
	// Server serves the admission handlers.
	Server webhook.Server
	// Attach reports whether the in-memory API server can send reviews to the handlers in the process. The operator
	// calls it only if it has admission handlers, possibly several times.
	Attach func() bool
	// Announce receives the webhook configurations as soon as the operator can answer reviews, and again after each
	// change. The URL of each entry ends with the path of its handler.
	Announce func(configurations []client.Object)
	// Announced is closed by the first call of Announce. An operator with admission handlers is not ready before that.
	Announced <-chan struct{}
}

// key is the key of the hooks in a context.
type key struct{}

// ContextWithHooks returns a context that carries the hooks to the operator that is run with it.
func ContextWithHooks(ctx context.Context, h Hooks) context.Context {
	return context.WithValue(ctx, key{}, h)
}

// HooksFromContext returns the hooks of the context, or empty ones.
func HooksFromContext(ctx context.Context) Hooks {
	h, _ := ctx.Value(key{}).(Hooks)
	return h
}
