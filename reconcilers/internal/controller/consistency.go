package controller

import (
	"cmp"
	"net/http"
)

// consistent is the way to the API server with lists of what is there now. An informer asks for any state at first, be
// it of the past, if it cannot have the list as a stream: a cache of the API server may be behind what another operator
// has done to an object, and its handlers would be called again.
func consistent(way *http.Client) *http.Client {
	own := *way
	own.Transport = consistentLists{next: cmp.Or(way.Transport, http.DefaultTransport)}
	return &own
}

type consistentLists struct{ next http.RoundTripper }

// RoundTrip sends the request.
func (t consistentLists) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	if query.Get("resourceVersion") == "0" {
		query.Del("resourceVersion")
		if query.Get("sendInitialEvents") == "" { // it means nothing without a version
			query.Del("resourceVersionMatch")
		}
		r = r.Clone(r.Context())
		r.URL.RawQuery = query.Encode()
	}
	return t.next.RoundTrip(r)
}
