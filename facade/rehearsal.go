package kopf

import (
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/kit"
)

func init() { kit.PartsOf = rehearse }

// rehearse is for package facadetest, which calls handlers without an operator that runs.
func rehearse(operator any, scheme *runtime.Scheme, cluster client.Client) (kit.Parts, error) {
	op, _ := operator.(*Operator)
	if !op.valid() {
		return kit.Parts{}, errNoOperator
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	plan, err := op.plan(scheme)
	if err != nil {
		return kit.Parts{}, err
	}
	op.clients = op.clientsOf(cluster, cluster)
	parts := kit.Parts{Children: op.clients.children}
	for _, one := range plan {
		parts.Handlers = append(parts.Handlers, one.Handler)
	}
	return parts, nil
}
