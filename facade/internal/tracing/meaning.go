package tracing

import (
	"net/http"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
)

// request is what a request to the API server asks for. It has neither names nor selectors.
type request struct{ verb, group, resource, subresource string }

// String is the name of its span, such as "patch widgets.example.org/status".
func (r request) String() string {
	text := r.verb
	if r.resource != "" {
		text += " " + r.kind()
	}
	if r.subresource != "" {
		text += "/" + r.subresource
	}
	return text
}

func (r request) kind() string {
	if r.group == "" {
		return r.resource
	}
	return r.resource + "." + r.group
}

func (r request) attributes(method string) []attribute.KeyValue {
	all := []attribute.KeyValue{attribute.String("http.request.method", method), attribute.String("kopf.verb", r.verb)}
	if r.resource != "" {
		all = append(all, attribute.String("kopf.resource", r.kind()))
	}
	if r.subresource != "" {
		all = append(all, attribute.String("kopf.subresource", r.subresource))
	}
	return all
}

// meaning reads the path, /api/v1/… or /apis/<group>/<version>/…, behind whatever a proxy has in front of it. What has
// no resource in its path is named by its method.
func meaning(r *http.Request) request {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	found := request{verb: strings.ToLower(r.Method)}
	at := slices.IndexFunc(parts, func(part string) bool { return part == "api" || part == "apis" })
	if at < 0 {
		return found
	}
	root, rest := parts[at], parts[at+1:]
	if root == "apis" && len(rest) > 0 {
		found.group, rest = rest[0], rest[1:]
	}
	if len(rest) < 2 { // the version, and nothing more
		return request{verb: found.verb}
	}
	rest = rest[1:]
	if namespaced(rest) {
		rest = rest[2:]
	}
	found.resource = rest[0]
	if len(rest) > 2 {
		found.subresource = rest[2]
	}
	found.verb = verb(r, len(rest) > 1)
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
