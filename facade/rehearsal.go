package facade

import (
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/rehearsal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

func init() { rehearsal.Handlers = rehearse }

// rehearse is for package facadetest, which calls handlers without an operator that runs.
func rehearse(operator any, scheme *runtime.Scheme, cluster client.Client) ([]*handlers.Handler, error) {
	op, _ := operator.(*Operator)
	if !op.valid() {
		return nil, errNoOperator
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	plan, err := op.plan(scheme)
	if err != nil {
		return nil, err
	}
	op.clients = op.clientsOf(cluster, cluster)
	all := make([]*handlers.Handler, 0, len(plan))
	for _, one := range plan {
		all = append(all, one.Handler)
	}
	return all, nil
}
