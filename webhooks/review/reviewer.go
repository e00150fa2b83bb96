package review

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
)

// errTooHeavy is the error of a review for which there is never enough memory.
var errTooHeavy = errors.New("the admission review takes too much memory once it is decoded")

// Served is one resource with the admitting handlers that review it, in the order of registration.
type Served struct {
	Resource discovery.Resource
	Handlers []*adapters.Handler
}

// Reviewer answers reviews. Any number of them may be answered at once.
type Reviewer struct {
	// Served gives what is served now. It is called for each review, and what it gives is not modified.
	Served func() []Served
	// Serves reports whether handlers are asked about objects in a namespace; nil is about all of them. Objects outside
	// of any namespace, Namespaces included, are always reviewed.
	Serves func(namespace string) bool
	// Own returns what the operator itself writes, which no handler is asked about; nil is nothing. It is called for
	// each review.
	Own func() OwnWrites
}

// Review answers one review. The handlers' errors are in the response, which denies the request then; an error here is
// that of a review that cannot be answered, an [Error] with its HTTP status. The logger in the context gets the object.
func (r *Reviewer) Review(ctx context.Context, in Request) (Response, error) {
	asked, err := decode(in)
	if err != nil {
		return Response{}, &Error{http.StatusBadRequest, err}
	}
	if err := awaited(ctx); err != nil {
		return Response{}, err
	}
	served, err := r.find(asked.resource)
	if err != nil {
		return Response{}, err
	}
	ctx = logf.IntoContext(ctx, asked.logger(logf.FromContext(ctx), served.Resource))
	one, own := &reviewing{request: asked, resource: served.Resource}, r.own()
	if !r.serves(served.Resource, asked.admission.Namespace) || own.admit(ctx, asked.admission) {
		return one.response(ctx) // no handler was called, so all is allowed
	}
	if in.TooHeavy {
		return Response{}, &Error{http.StatusRequestEntityTooLarge, errTooHeavy}
	}
	if err := one.decode(served.Handlers); err != nil {
		return Response{}, &Error{http.StatusBadRequest, err}
	}
	if err := one.serve(ctx, served.Handlers); err != nil {
		return Response{}, internal(err)
	}
	response, err := one.response(ctx)
	if err != nil {
		return Response{}, internal(err)
	}
	own.logRefusals(ctx, one)
	return response, nil
}

// serves reports whether handlers are asked about an object.
func (r *Reviewer) serves(of discovery.Resource, namespace string) bool {
	return r.Serves == nil || !of.Namespaced || namespace == "" || r.Serves(namespace)
}

// own is what the operator writes.
func (r *Reviewer) own() OwnWrites {
	if r.Own == nil {
		return OwnWrites{}
	}
	return r.Own()
}

// internal is an error without a status of its own.
func internal(err error) error {
	if known := (*Error)(nil); errors.As(err, &known) {
		return err
	}
	return &Error{http.StatusInternalServerError, err}
}

// find finds the resource that a review is about.
func (r *Reviewer) find(asked schema.GroupVersionResource) (found Served, err error) {
	count := 0
	for _, one := range r.Served() {
		if one.Resource.GroupVersionResource() == asked {
			count, found = count+1, one
		}
	}
	switch count {
	case 0:
		return Served{}, &Error{http.StatusNotFound, fmt.Errorf("no handler reviews the resource %s", nameOf(asked))}
	case 1:
		return found, nil
	default:
		return Served{}, &Error{
			http.StatusConflict, fmt.Errorf("the resource %s is served %d times", nameOf(asked), count),
		}
	}
}

// nameOf is as messages have resources.
func nameOf(r schema.GroupVersionResource) string {
	return fmt.Sprintf("%s/%s/%s", r.Group, r.Version, r.Resource)
}
