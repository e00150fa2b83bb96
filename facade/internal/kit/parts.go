package kit

import (
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/children"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

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
