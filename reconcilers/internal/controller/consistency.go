package controller

import (
	"net/http"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/transport"
)

// forceConsistentList turns the first list of an informer into a consistent read. A reflector lists with resourceVersion=0
// unless it can stream the list, and the API server may then answer from a stale watch cache. Such a list could lack
// the last writes of another operator that handled the object before, and handlers would run again.
func forceConsistentList(next transport.RoundTripFunc) transport.RoundTripFunc {
	return func(r *http.Request) (*http.Response, error) {
		query := r.URL.Query()
		if query.Get("resourceVersion") == "0" {
			query.Del("resourceVersion")
			if query.Get("sendInitialEvents") == "" { // without a resource version, this parameter is invalid
				query.Del("resourceVersionMatch")
			}
			// A RoundTripper must not modify the request of its caller.
			r = r.Clone(r.Context())
			r.URL.RawQuery = query.Encode()
		}
		return next(r)
	}
}
