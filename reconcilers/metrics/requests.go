package metrics

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/transport"
)

// Around counts the requests that are sent by the transport, by Kubernetes' verb, and by the class of the answer: 2xx,
// 4xx, 5xx and so on, or "error" if there was none.
func (o *Operator) Around(next transport.RoundTripFunc) transport.RoundTripFunc {
	if o.off() {
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

// APIRequest describes an HTTP request to the API server in the words of RBAC: by its method, its path and whether it
// is a watch. It never has names of objects, selectors or bodies. Resource, Group and Subresource are empty if the path
// has none.
type APIRequest struct {
	// Verb is that of RBAC, such as list or deletecollection; the method in small letters without a resource.
	Verb string
	// Group is that of the API, empty for the core.
	Group string
	// Resource is the plural, such as pods.
	Resource string
	// Subresource is such as status.
	Subresource string
}

// APIRequestOf reads the path, /api/v1/… or /apis/<group>/<version>/…, behind whatever a proxy has in front of it.
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
	if len(rest) < 2 { // the version, and nothing more
		return APIRequest{Verb: found.Verb}
	}
	rest = rest[1:]
	if namespaced(rest) {
		rest = rest[2:]
	}
	found.Resource = rest[0]
	if len(rest) > 2 {
		found.Subresource = rest[2]
	}
	found.Verb = verb(r, len(rest) > 1)
	return found
}

// namespaced tells whether the first two parts are those of a namespace that something is in.
func namespaced(parts []string) bool {
	return len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize"
}

// verb is what RBAC calls it.
func verb(r *http.Request, named bool) string {
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

// Kind returns the resource with its group, such as pods or widgets.example.org.
func (a APIRequest) Kind() string {
	if a.Group == "" {
		return a.Resource
	}
	return a.Resource + "." + a.Group
}

// String returns all of it, such as "patch widgets.example.org/status".
func (a APIRequest) String() string {
	text := a.Verb
	if a.Resource != "" {
		text += " " + a.Kind()
	}
	if a.Subresource != "" {
		text += "/" + a.Subresource
	}
	return text
}
