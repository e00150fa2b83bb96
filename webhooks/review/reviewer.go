package review

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

// errExceedsMemory is the error of a review whose decoded objects would need more memory than all reviews together may
// use.
var errExceedsMemory = errors.New("the admission review takes too much memory once it is decoded")

// ServedResource is one resource with the handlers that review it, in the order of registration.
type ServedResource struct {
	Resource discovery.Resource
	Handlers []*adapters.HandlerChain
}

// Reviewer answers reviews. It can be used concurrently.
type Reviewer struct {
	// ServedResources returns the resources and their handlers. It is called for each review, and its result is not
	// modified.
	ServedResources func() []ServedResource
	// ServesNamespace reports whether objects in a namespace are reviewed; nil means all. Cluster-scoped objects,
	// including Namespaces, are always reviewed.
	ServesNamespace func(namespace string) bool
	// OwnWrites describes the operator's own writes, for which no handler is called; nil means none. It is called for
	// each review.
	OwnWrites func() OwnWrites
}

// Review answers one review. If a handler returns an error, the response contains a denial. If the review cannot be
// answered, Review returns an error, and [StatusOf] its HTTP status. Handlers find the name of the object in the logger
// of their context.
func (r *Reviewer) Review(ctx context.Context, in EndpointRequest) (Response, error) {
	// First, decode the request without its objects, and find the resource.
	asked, err := decodeReview(in)
	if err != nil {
		return Response{}, &ResponseError{Status: http.StatusBadRequest, Err: err}
	}
	// A large review takes long to decode, so the client may have disconnected.
	if err := checkStillAwaited(ctx); err != nil {
		return Response{}, err
	}
	served, err := r.findServed(asked.resource)
	if err != nil {
		return Response{}, err
	}
	ctx = logf.IntoContext(ctx, asked.objectLogger(logf.FromContext(ctx), served.Resource))
	one, own := &activeReview{request: asked, resource: served.Resource}, r.ownWrites()
	// The webhook configuration can express these conditions only partly, so they are checked again here.
	if !r.isReviewed(served.Resource, asked.admission.Namespace) || own.isOwnWrite(ctx, asked.admission) {
		return one.buildResponse(ctx) // without handlers, the request is allowed
	}
	// The rest of the review decodes whole objects.
	if in.ExceedsMemory {
		return Response{}, &ResponseError{Status: http.StatusRequestEntityTooLarge, Err: errExceedsMemory}
	}
	// Then, decode the objects as far as necessary, call the handlers, and combine their results.
	if err := one.decodeObjects(served.Handlers); err != nil {
		return Response{}, &ResponseError{Status: http.StatusBadRequest, Err: err}
	}
	if err := one.callHandlers(ctx, served.Handlers); err != nil {
		return Response{}, err
	}
	response, err := one.buildResponse(ctx)
	if err != nil {
		return Response{}, err
	}
	own.logRefusals(ctx, one)
	return response, nil
}

// isReviewed reports whether objects of the resource in the namespace are reviewed.
func (r *Reviewer) isReviewed(of discovery.Resource, namespace string) bool {
	return r.ServesNamespace == nil || !of.Namespaced || namespace == "" || r.ServesNamespace(namespace)
}

// ownWrites returns the description of the operator's own writes.
func (r *Reviewer) ownWrites() OwnWrites {
	if r.OwnWrites == nil {
		return OwnWrites{}
	}
	return r.OwnWrites()
}

// findServed returns the resource of a review. As in Kopf, exactly one served resource must match.
func (r *Reviewer) findServed(asked schema.GroupVersionResource) (found ServedResource, err error) {
	count := 0
	for _, one := range r.ServedResources() {
		if one.Resource.GroupVersionResource() == asked {
			count, found = count+1, one
		}
	}
	switch count {
	case 0:
		return ServedResource{}, &ResponseError{Status: http.StatusNotFound,
			Err: fmt.Errorf("no handler reviews the resource %s", resourceName(asked))}
	case 1:
		return found, nil
	default:
		return ServedResource{}, &ResponseError{Status: http.StatusConflict,
			Err: fmt.Errorf("the resource %s is served %d times", resourceName(asked), count)}
	}
}

// resourceName returns the name of a resource for messages.
func resourceName(r schema.GroupVersionResource) string {
	return fmt.Sprintf("%s/%s/%s", r.Group, r.Version, r.Resource)
}
