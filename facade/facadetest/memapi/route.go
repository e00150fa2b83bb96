package memapi

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RoundTrip answers a request. It only returns errors of reading the request; API errors are responses.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	// The client has given up before the request was processed.
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	// The context value is set by [ServerOf].
	if found, ok := r.Context().Value(findServer{}).(**Server); ok {
		*found = s
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Features that the server lacks are refused before anything is changed.
	partial, err := negotiateRequest(r, body)
	if err != nil {
		return newErrorResponse(r, err), nil
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if document, ok := s.discoveryDocument(parts); ok {
		return newDocumentResponse(r, http.StatusOK, document), nil
	}
	return s.serveReviewed(r, parts, partial, body), nil
}

// serveObjects performs a request for objects. Everything but the name, the method and the subresource is checked by
// the called methods. It returns nil if the request must be served again, because its object changed during a review.
func (s *Server) serveObjects(r *http.Request, t target, body []byte) *http.Response {
	var object map[string]any
	var err error
	code := http.StatusOK
	switch {
	case t.name == "" && r.Method == http.MethodGet && isWatch(r.URL.Query()):
		return s.startWatch(r, t)
	case t.name == "" && r.Method == http.MethodGet:
		object, err = s.listObjects(t, r.URL.Query())
	case t.name == "" && r.Method == http.MethodPost:
		code = http.StatusCreated
		object, err = s.createObject(t, body)
	case r.Method == http.MethodDelete && t.subresource == "":
		object, err = s.serveDeletion(r, t, body)
	case t.name == "":
		err = apierrors.NewMethodNotSupported(t.qualifiedName(), strings.ToLower(r.Method))
	case t.subresource == "scale":
		object, err = s.serveScale(r, t, body)
	case r.Method == http.MethodGet:
		object, err = s.getObject(t, r.URL.Query().Get("resourceVersion"))
	case r.Method == http.MethodPut:
		object, err = s.updateObject(t, body)
	case r.Method == http.MethodPatch:
		object, code, err = s.patchObject(r, t, body)
	default:
		err = apierrors.NewMethodNotSupported(t.qualifiedName(), strings.ToLower(r.Method))
	}
	// A stored object could not be converted; the result is incomplete.
	if err == nil && t.notes.failure != nil {
		err = t.notes.failure
	}
	switch {
	case errors.Is(err, errChangedInReview):
		return nil
	case err != nil:
		return newErrorResponse(r, err)
	}
	return newDocumentResponse(r, code, t.formatAnswer(object))
}

// serveDeletion performs a deletion of an object or a collection.
func (s *Server) serveDeletion(r *http.Request, t target, body []byte) (map[string]any, error) {
	options, err := parseDeleteOptions(r.URL.Query(), body)
	if err != nil {
		return nil, err
	}
	if t.name == "" {
		return s.deleteCollection(t, r.URL.Query(), options)
	}
	return s.deleteObject(t, options)
}

// isWatch reports whether the query requests a watch.
func isWatch(query url.Values) bool {
	return query.Get("watch") != "" && query.Get("watch") != "false"
}

// findTarget returns the target of a path. It returns false if the path does not belong to a served resource or
// subresource.
func (s *Server) findTarget(parts []string) (target, bool) {
	t, gv, asked := parsePath(parts)
	if !asked {
		return target{}, false
	}
	found, ok := s.findResource(gv, t.Plural)
	if !ok {
		return t, false
	}
	// The target is replaced by one with the schema, but the subresource is that of the path.
	subresource := t.subresource
	t = s.newTarget(found, t.namespace, t.name)
	t.subresource = subresource
	status := t.subresource == "" || t.subresource == "status" && found.StatusSubresource ||
		t.subresource == "scale" && t.scalePaths() != nil
	// A single object of a namespaced kind needs a namespace; a list can span all of them.
	whole := !found.Namespaced || t.namespace != "" || t.name == ""
	return t, status && whole && (found.Namespaced || t.namespace == "")
}

// parsePath splits paths like /api/v1/… and /apis/group/version/… Of the resource, only the group, the version and the
// plural are set. It returns false for paths that are not about objects.
func parsePath(parts []string) (t target, gv schema.GroupVersion, ok bool) {
	switch {
	case len(parts) > 2 && parts[0] == "api":
		gv, parts = schema.GroupVersion{Version: parts[1]}, parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		gv, parts = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	default:
		return target{}, gv, false
	}
	own := len(parts) == 3 && (parts[2] == "status" || parts[2] == "finalize") // a subresource of the namespace itself
	// A path below a namespace: the namespace precedes the resource.
	if len(parts) > 2 && parts[0] == "namespaces" && !own {
		t.namespace, parts = parts[1], parts[2:]
	}
	t.Resource = Resource{Group: gv.Group, Version: gv.Version, Plural: parts[0]}
	if len(parts) > 1 {
		t.name = parts[1]
	}
	if len(parts) > 2 {
		t.subresource = parts[2]
	}
	// Longer paths, such as those of proxies, are not supported.
	return t, gv, len(parts) <= 3
}
