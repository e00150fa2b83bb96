package controller

import (
	"net/http"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/transport"
)

// consistent asks the API server for lists of the current state. An informer asks for any state at first, even a past
// one, if it cannot have the list as a stream: a cache of the API server may lack the last writes of another operator
// to an object, and the handlers would be called again.
func consistent(next transport.RoundTripFunc) transport.RoundTripFunc {
	return func(r *http.Request) (*http.Response, error) {
		query := r.URL.Query()
		if query.Get("resourceVersion") == "0" {
			query.Del("resourceVersion")
			if query.Get("sendInitialEvents") == "" { // it means nothing without a version
				query.Del("resourceVersionMatch")
			}
			r = r.Clone(r.Context())
			r.URL.RawQuery = query.Encode()
		}
		return next(r)
	}
}
