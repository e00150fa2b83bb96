package kit

import (
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/children"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Parts are what an operator has for the engine.
type Parts struct {
	Handlers []*handlers.Handler
	// Children applies the children that the handlers declare; its Owned is not nil if any kinds are watched.
	Children *children.Keeper
}

// PartsOf returns the parts of an operator, which is a *kopf.Operator. Its handlers are checked against the scheme, as
// by the set-up, and read and write with the client. The error has all mistakes of the registrations. Package facade
// sets the function when it is linked.
var PartsOf func(operator any, scheme *runtime.Scheme, cluster client.Client) (Parts, error)
