package memapi

import (
	"io"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi/internal/schemas"
)

// target is what a request is about.
type target struct {
	Resource
	namespace, name, subresource string
	// manager is who sends it; managed is who has set which field, by a server-side apply.
	manager string
	// partial has the metadata alone answered.
	partial bool
	managed any
	// schema is that of the version asked for, storage that of the stored one; both may be nil.
	schema, storage *schemas.Version
	// stored is the name of the stored version, convert the webhook that converts from and to it, if there is one.
	stored  string
	convert schemas.Converter
	// patched is the whole object that a patch has led to, as it is blamed for unknown fields.
	patched []byte
	// validation is what becomes of unknown fields; see metav1.FieldValidationStrict.
	validation string
	// dry has nothing stored.
	dry   bool
	notes *notes
	// reviews are those of the request; nil if it has no reviewers.
	reviews *reviews
	// reviewedKind is the kind of the objects that are reviewed if it is not that of the resource.
	reviewedKind schema.GroupVersionKind
}

func (t target) key() string { return t.namespace + "/" + t.name }

// RoundTrip answers a request. Its errors are those of reading it; the API's are answers.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if found, ok := r.Context().Value(findServer{}).(**Server); ok {
		*found = s
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	partial, err := negotiated(r, body)
	if err != nil {
		return refuse(r, err), nil
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if document, ok := s.discovery(parts); ok {
		return respond(r, http.StatusOK, document), nil
	}
	return s.serveReviewed(r, parts, partial, body), nil
}

func (s *Server) serve(r *http.Request, t target, body []byte) *http.Response {
	var object map[string]any
	var err error
	code := http.StatusOK
	switch {
	case t.name == "" && r.Method == http.MethodGet && watching(r.URL.Query()):
		return s.watch(r, t)
	case t.name == "" && r.Method == http.MethodGet:
		object, err = s.list(t, r.URL.Query())
	case t.name == "" && r.Method == http.MethodPost:
		code = http.StatusCreated
		object, err = s.create(t, body)
	case r.Method == http.MethodDelete && t.subresource == "":
		object, err = s.remover(r, t, body)
	case t.name == "":
		err = apierrors.NewMethodNotSupported(t.qualified(), strings.ToLower(r.Method))
	case t.subresource == "scale":
		object, err = s.scale(r, t, body)
	case r.Method == http.MethodGet:
		object, err = s.get(t, r.URL.Query().Get("resourceVersion"))
	case r.Method == http.MethodPut:
		object, err = s.update(t, body)
	case r.Method == http.MethodPatch:
		object, code, err = s.patch(r, t, body)
	default:
		err = apierrors.NewMethodNotSupported(t.qualified(), strings.ToLower(r.Method))
	}
	if err == nil && t.notes.failure != nil {
		err = t.notes.failure
	}
	if err != nil {
		return refuse(r, err)
	}
	return respond(r, code, t.presented(object))
}

func (s *Server) remover(r *http.Request, t target, body []byte) (map[string]any, error) {
	options, err := deletion(r.URL.Query(), body)
	if err != nil {
		return nil, err
	}
	if t.name == "" {
		return s.deleteAll(t, r.URL.Query(), options)
	}
	return s.delete(t, options)
}

func watching(query url.Values) bool {
	return query.Get("watch") != "" && query.Get("watch") != "false"
}

// route finds what is served at a path.
func (s *Server) route(parts []string) (target, bool) {
	t, gv, asked := parse(parts)
	if !asked {
		return target{}, false
	}
	found, ok := s.find(gv, t.Plural)
	if !ok {
		return t, false
	}
	subresource := t.subresource
	t = s.target(found, t.namespace, t.name)
	t.subresource = subresource
	status := t.subresource == "" || t.subresource == "status" && found.StatusSubresource ||
		t.subresource == "scale" && t.scalePaths() != nil
	whole := !found.Namespaced || t.namespace != "" || t.name == ""
	return t, status && whole && (found.Namespaced || t.namespace == "")
}

// parse reads /api/v1/… and /apis/group/version/… Of the resource, it has what the path says. It is not ok for other
// paths.
func parse(parts []string) (t target, gv schema.GroupVersion, ok bool) {
	switch {
	case len(parts) > 2 && parts[0] == "api":
		gv, parts = schema.GroupVersion{Version: parts[1]}, parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		gv, parts = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	default:
		return target{}, gv, false
	}
	own := len(parts) == 3 && (parts[2] == "status" || parts[2] == "finalize") // of the namespace itself
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
	return t, gv, len(parts) <= 3
}
