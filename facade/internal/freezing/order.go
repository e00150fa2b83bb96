package freezing

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
)

// Order is a request to the operators that share peering objects.
type Order struct {
	// Peering is the name of the peering objects.
	Peering string
	// Namespaces are the namespaces of the objects. Without any, the cluster-scoped object is meant.
	Namespaces namespaces.Patterns
	// Identity is the key of the record in the objects.
	Identity string
	// Record is the record to write. If it has no lifetime, the record with this identity is removed.
	Record peering.PeerRecord
}

// isResume reports whether the order removes the record.
func (o Order) isResume() bool { return o.Record.Lifetime <= 0 }

// CarryOut writes the record into all selected objects, or removes it there.
//
// # Errors
//
// The error names each namespace where the request has failed; the other namespaces are still processed. A namespace
// that matches only a pattern needs no peering object, but at least one of all namespaces must have it. A namespace
// that is given by name must have it.
func (o Order) CarryOut(ctx context.Context, config *rest.Config) error {
	// Without namespaces, the order is for the cluster-scoped kind.
	api, err := connectScope(ctx, config, len(o.Namespaces) == 0)
	if err != nil {
		return err
	}
	places, err := api.selectNamespaces(ctx, o.Namespaces)
	if err != nil {
		return err
	}
	var problems []error
	done := 0
	for _, one := range places {
		found, err := o.carryOutIn(ctx, api, one)
		switch {
		case err != nil:
			problems = append(problems, err)
		// The user expects a peering object there.
		case !found && one.isNamed:
			problems = append(problems, api.missingObjectError(o.Peering, one.namespace))
		case found:
			done++
		}
	}
	// Without any object, the command would have no effect, and the user would not notice.
	if done == 0 && len(problems) == 0 {
		return fmt.Errorf("no namespace of %s has a %s %q, so no operator was notified",
			strings.Join(o.Namespaces.Texts(), " "), api.kinds[0].Kind, o.Peering)
	}
	return errors.Join(problems...)
}

// carryOutIn processes one namespace, for each group that has the kind. Found is false if no group has the object.
func (o Order) carryOutIn(ctx context.Context, api *cluster, where namespaceTarget) (found bool, err error) {
	// A problem in one namespace must not prevent the others from being processed.
	var problems []error
	for _, kind := range api.kinds {
		object := peeringObject{stored: peering.StoredObject{
			Client: api.client, Kind: kind.GroupVersionKind, Namespace: where.namespace, Name: o.Peering,
			// With the status subresource, a patch of the main resource would drop the record.
			HasStatus: kind.HasStatus(),
		}, resource: kind.GroupResource()}
		switch err := object.applyOrder(ctx, o); {
		// The object may exist in the other group.
		case apierrors.IsNotFound(err):
		case err != nil:
			problems = append(problems, err)
		default:
			found = true
		}
	}
	return found, errors.Join(problems...)
}
