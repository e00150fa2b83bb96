package kit

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/children"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
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

// OperatorParts are the parts of an operator that package facadetest calls handlers with.
type OperatorParts struct {
	// Handlers are the resolved handlers of objects, in the order of registration.
	Handlers []*handlers.Handler
	// Children applies the children that handlers declare. Its Owned field is nil if no kind of children is watched.
	Children *children.Keeper
}

// PartsOf returns the parts of an operator, which must be a *kopf.Operator. It checks the handlers against the scheme,
// as the set-up does, and gives them the client. The error contains all registration errors. Package facade assigns the
// function in its init: kit cannot import facade, which imports kit.
var PartsOf func(operator any, scheme *runtime.Scheme, cluster client.Client) (OperatorParts, error)
