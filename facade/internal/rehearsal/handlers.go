package rehearsal

import (
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Handlers gives the handlers of an operator, which is a *facade.Operator: checked by the scheme, as in a set-up, and
// with this client for what they read and write. An error is all that is wrong with the registrations.
var Handlers func(operator any, scheme *runtime.Scheme, cluster client.Client) ([]*handlers.Handler, error)
