package metrics

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/internal/transport"
)

// WrapRoundTrip counts the requests that the transport sends, by Kubernetes' verb and by the class of the status code:
// 2xx, 4xx, 5xx and so on. A request without a response counts as "error".
func (o *OperatorMetrics) WrapRoundTrip(next transport.RoundTripFunc) transport.RoundTripFunc {
	if o.isDisabled() {
		return next
	}
	return func(r *http.Request) (*http.Response, error) {
		response, err := next(r)
		code := "error"
		if err == nil {
			code = fmt.Sprintf("%dxx", response.StatusCode/100)
		}
		o.requests.WithLabelValues(o.name, APIRequestOf(r).Verb, code).Inc()
		return response, err
	}
}

// APIRequest describes an HTTP request to the API server in the terms of RBAC. It is derived from the method, the path
// and the query parameter "watch". It never contains names of objects, selectors or bodies. Resource, Group and
// Subresource are empty for paths without a resource.
type APIRequest struct {
	// Verb is the verb of RBAC, such as list or deletecollection. Without a resource, it is the method in lower case.
	Verb string
	// Group is the API group, empty for the core group.
	Group string
	// Resource is the plural name, such as pods.
	Resource string
	// Subresource is the name of a subresource, such as status.
	Subresource string
}

// APIRequestOf parses the path: /api/v1/… or /apis/<group>/<version>/…. It ignores a prefix that a proxy has added.
func APIRequestOf(r *http.Request) APIRequest {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	found := APIRequest{Verb: strings.ToLower(r.Method)}
	at := slices.IndexFunc(parts, func(part string) bool { return part == "api" || part == "apis" })
	if at < 0 {
		return found
	}
	root, rest := parts[at], parts[at+1:]
	if root == "apis" && len(rest) > 0 {
		found.Group, rest = rest[0], rest[1:]
	}
	// Such a path ends with the version. It belongs to discovery.
	if len(rest) < 2 {
		return APIRequest{Verb: found.Verb}
	}
	rest = rest[1:]
	if isNamespaced(rest) {
		rest = rest[2:]
	}
	// The remaining parts are the resource, the name and the subresource.
	found.Resource = rest[0]
	if len(rest) > 2 {
		found.Subresource = rest[2]
	}
	found.Verb = requestVerb(r, len(rest) > 1)
	return found
}

// isNamespaced reports whether the first two parts are the namespace of a resource. The subresources of namespaces
// themselves have the same form as a namespaced resource, so they are excluded by name.
func isNamespaced(parts []string) bool {
	return len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize"
}

// requestVerb returns the verb of RBAC. Named reports whether the path has the name of an object.
func requestVerb(r *http.Request, named bool) string {
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") == "true":
		return "watch"
	case r.Method == http.MethodGet && !named:
		return "list"
	case r.Method == http.MethodDelete && !named:
		return "deletecollection"
	}
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	default:
		return strings.ToLower(r.Method)
	}
}

// GroupResource returns the resource with its group, such as pods or widgets.example.org.
func (a APIRequest) GroupResource() string {
	if a.Group == "" {
		return a.Resource
	}
	return a.Resource + "." + a.Group
}

// String returns the request in words, such as "patch widgets.example.org/status".
func (a APIRequest) String() string {
	text := a.Verb
	if a.Resource != "" {
		text += " " + a.GroupResource()
	}
	if a.Subresource != "" {
		text += "/" + a.Subresource
	}
	return text
}
