package memapi

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Request is one request for objects of a resource, as hooks and records show it.
type Request struct {
	// Verb is what it is about: get, list, watch, create, update, patch, delete or
	// deletecollection.
	Verb string
	// Resource is what is asked for; all but its Group, Version and Plural are empty if it is not served.
	Resource Resource
	// Namespace and Name are those of the URL; Subresource is "status" or empty.
	Namespace, Name, Subresource string
	// Path is that of the URL, Query what follows it.
	Path  string
	Query url.Values
	// ContentType tells the form of the body, for instance of a patch; Body is what was sent.
	ContentType string
	Body        []byte
	// Code is the code of the answer: 0 before there is one, and for an answer that was lost.
	Code int
}

// ReadRequest parses a request; ok is false if it is not for objects. The body can be read again afterwards.
func (s *Server) ReadRequest(r *http.Request) (request Request, ok bool, err error) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	t, gv, asked := parse(parts)
	if !asked {
		return Request{}, false, nil
	}
	if r.Body != nil {
		if request.Body, err = io.ReadAll(r.Body); err != nil {
			return Request{}, false, err
		}
		_ = r.Body.Close()
		r.Body = io.NopCloser(bytes.NewReader(request.Body))
	}
	s.mu.Lock()
	request.Resource, ok = s.find(gv, t.Plural)
	s.mu.Unlock()
	if !ok {
		request.Resource = t.Resource
	}
	request.Verb = verb(r, t.name)
	request.Namespace, request.Name, request.Subresource = t.namespace, t.name, t.subresource
	request.Path, request.Query, request.ContentType = r.URL.Path, r.URL.Query(), r.Header.Get("Content-Type")
	return request, true, nil
}

// verb is what the request is called in rules of access.
func verb(r *http.Request, name string) string {
	switch {
	case r.Method == http.MethodDelete && name == "":
		return "deletecollection"
	case r.Method != http.MethodGet:
		return map[string]string{
			http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
		}[r.Method]
	case name != "":
		return "get"
	case watching(r.URL.Query()):
		return "watch"
	default:
		return "list"
	}
}
