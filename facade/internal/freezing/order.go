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

// Order is what somebody asks of the operators that share peering objects.
type Order struct {
	// Peering is the name of the objects.
	Peering string
	// Namespaces are those where the objects are; none is the object of the whole cluster.
	Namespaces namespaces.Patterns
	// Identity is whose record it is.
	Identity string
	// Record is what is written; with no lifetime, the record is removed.
	Record peering.Record
}

// resumes tells whether operators go on.
func (o Order) resumes() bool { return o.Record.Lifetime <= 0 }

// Carry writes the record into all objects that are meant, or removes it there.
//
// # Errors
//
// There is one for each namespace where nothing could be done; the others are done nevertheless. A namespace that a
// pattern matches needs no peering object, but one of all must have it.
func (o Order) Carry(ctx context.Context, config *rest.Config) error {
	api, err := connect(ctx, config, len(o.Namespaces) == 0)
	if err != nil {
		return err
	}
	places, err := api.places(ctx, o.Namespaces)
	if err != nil {
		return err
	}
	var problems []error
	done := 0
	for _, one := range places {
		found, err := o.at(ctx, api, one)
		switch {
		case err != nil:
			problems = append(problems, err)
		case !found && one.named:
			problems = append(problems, api.missing(o.Peering, one.namespace))
		case found:
			done++
		}
	}
	if done == 0 && len(problems) == 0 {
		return fmt.Errorf("no namespace of %s has a %s %q, so no operator was notified",
			strings.Join(o.Namespaces.Texts(), " "), api.kinds[0].Kind, o.Peering)
	}
	return errors.Join(problems...)
}

// at does it in one namespace, for each group that has the kind. It is not found if none of them has the object.
func (o Order) at(ctx context.Context, api *cluster, where place) (found bool, err error) {
	var problems []error
	for _, kind := range api.kinds {
		object := object{stored: peering.Stored{
			Client: api.client, Kind: kind.GroupVersionKind, Namespace: where.namespace, Name: o.Peering,
			Subresource: kind.HasStatus(),
		}, resource: kind.GroupResource()}
		switch err := object.carry(ctx, o); {
		case apierrors.IsNotFound(err):
		case err != nil:
			problems = append(problems, err)
		default:
			found = true
		}
	}
	return found, errors.Join(problems...)
}
