package review

import (
	"context"
	"errors"
	"net/http"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
)

// Served is one resource with the handlers that review it, in the order of registration.
type Served struct {
	Resource discovery.Resource
	Handlers []*adapters.Handler
}

// Reviewer answers reviews. Any number of them may be answered at once.
type Reviewer struct {
	// Served gives what is served now. It is called for each review, and what it gives is not modified.
	Served func() []Served
}

// Review answers one review. The handlers' errors are in the response, which denies the request then; an error here is
// that of a review that cannot be answered, an [Error] with its HTTP status.
func (r *Reviewer) Review(context.Context, Request) (Response, error) {
	return Response{}, &Error{http.StatusInternalServerError, errors.New("reviews are not answered yet")}
}
