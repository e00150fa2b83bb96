package metrics

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Around counts the requests that are sent by the transport, by Kubernetes' verb, and by the class of the answer: 2xx,
// 4xx, 5xx and so on, or "error" if there was none.
func (o *Operator) Around(next http.RoundTripper) http.RoundTripper {
	if o.off() {
		return next
	}
	return &counting{operator: o, next: next}
}

type counting struct {
	operator *Operator
	next     http.RoundTripper
}

// RoundTrip sends the request, and counts it when it is answered.
func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(r)
	code := "error"
	if err == nil {
		code = fmt.Sprintf("%dxx", response.StatusCode/100)
	}
	c.operator.requests.WithLabelValues(c.operator.name, verbOf(r), code).Inc()
	return response, err
}

// verbOf is the verb that the rights of RBAC have for the request; "get" for what is no resource.
func verbOf(r *http.Request) string {
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if collection(r.URL.Path) {
			return "deletecollection"
		}
		return "delete"
	}
	switch {
	case r.URL.Query().Get("watch") == "true":
		return "watch"
	case collection(r.URL.Path):
		return "list"
	default:
		return "get"
	}
}

// collection tells whether the path is that of all objects of a resource, in a namespace or in all. The API server may
// be below a path of its own.
func collection(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	at := slices.IndexFunc(parts, func(part string) bool { return part == "api" || part == "apis" })
	if at < 0 {
		return false
	}
	skipped := 2 // api, version
	if parts[at] == "apis" {
		skipped = 3 // apis, group, version
	}
	if parts = parts[at:]; len(parts) <= skipped {
		return false
	}
	parts = parts[skipped:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	return len(parts) == 1
}
