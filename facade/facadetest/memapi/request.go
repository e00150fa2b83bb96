package memapi

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Request describes one request for objects of a resource, for hooks and records.
type Request struct {
	// Verb is the verb of the request in RBAC: get, list, watch, create, update, patch, delete or deletecollection.
	Verb string
	// Resource is the requested resource. If it is not served, only its Group, Version and Plural are set.
	Resource Resource
	// Namespace and Name are those in the URL. Subresource is the last segment, such as "status", or empty.
	Namespace, Name, Subresource string
	// Path is the path of the URL, Query its query.
	Path  string
	Query url.Values
	// ContentType is the content type of the body, for instance that of a patch. Body is the body as sent.
	ContentType string
	Body        []byte
	// Code is the status code of the answer. It is 0 before the answer, and for an answer that was lost.
	Code int
}

// ReadRequest parses a request. It returns false for ok if the request is not for objects. The body can be read again
// afterwards.
func (s *Server) ReadRequest(r *http.Request) (request Request, ok bool, err error) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	t, gv, asked := parsePath(parts)
	if !asked {
		return Request{}, false, nil
	}
	// The body must remain readable for the server, so it is replaced.
	if r.Body != nil {
		if request.Body, err = io.ReadAll(r.Body); err != nil {
			return Request{}, false, err
		}
		_ = r.Body.Close()
		r.Body = io.NopCloser(bytes.NewReader(request.Body))
	}
	s.mu.Lock()
	request.Resource, ok = s.findResource(gv, t.Plural)
	s.mu.Unlock()
	// Hooks also see requests for resources that are not served.
	if !ok {
		request.Resource = t.Resource
	}
	request.Verb = requestVerb(r, t.name)
	request.Namespace, request.Name, request.Subresource = t.namespace, t.name, t.subresource
	request.Path, request.Query, request.ContentType = r.URL.Path, r.URL.Query(), r.Header.Get("Content-Type")
	return request, true, nil
}

// requestVerb returns the verb of a request, as RBAC rules name it.
func requestVerb(r *http.Request, name string) string {
	switch {
	case r.Method == http.MethodDelete && name == "":
		return "deletecollection"
	case r.Method != http.MethodGet:
		return map[string]string{
			http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
		}[r.Method]
	case name != "":
		return "get"
	case isWatch(r.URL.Query()):
		return "watch"
	default:
		return "list"
	}
}
