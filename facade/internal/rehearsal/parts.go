package rehearsal

import (
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/children"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Parts are what an operator has for the engine.
type Parts struct {
	Handlers []*handlers.Handler
	// Children keeps what the handlers declare; if any kinds are watched, its Owned is not nil.
	Children *children.Keeper
}

// Of gives the parts of an operator, which is a *kopf.Operator: its handlers are checked by the scheme, as in a
// set-up, and have this client for what they read and write. An error is all that is wrong with the registrations.
var Of func(operator any, scheme *runtime.Scheme, cluster client.Client) (Parts, error)
