package memapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ErrCut is the error of requests on a connection after [Connection.Cut].
var ErrCut = errors.New("the connection is cut")

// Connection connects one client, such as one process, to the server. It can inject errors into requests, record them,
// and cut them off. It is an http.RoundTripper for a client configuration: see [Config]. Requests that are not for
// objects, such as discovery, pass unchanged and are not recorded.
//
// Before and After must be set before the first request. They run without any lock, so they may change objects of the
// server and may block. If the request's context ends while a hook runs, the request fails with the context's error. A
// hook's error becomes an answer of the API server if errors.As finds an apierrors.APIStatus in it. Any other error
// looks like a broken connection.
type Connection struct {
	// Before is called ahead of each request. If it returns an error, the server does not receive the request.
	Before func(ctx context.Context, r Request) error
	// After is called after each successful request, except for watches, whose answers do not end. The request has
	// taken effect; an error replaces its answer.
	After func(ctx context.Context, r Request) error

	server *Server
	// uncut ends when the connection is cut.
	uncut    context.Context //nolint:containedctx // it ends with the connection
	cut      context.CancelFunc
	mu       sync.Mutex
	requests []Request
}

var _ http.RoundTripper = (*Connection)(nil)

// Connect returns a new connection to the server.
func (s *Server) Connect() *Connection {
	uncut, cut := context.WithCancel(context.Background())
	return &Connection{server: s, uncut: uncut, cut: cut}
}

// Cut ends the connection permanently. Running watches end, requests no longer reach the server, and answers no longer
// reach the client. A request that the server is processing still takes effect.
func (c *Connection) Cut() { c.cut() }

// DrainRequests returns and removes the recorded requests, in the order in which they were answered, refused or lost.
func (c *Connection) DrainRequests() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	record := c.requests
	c.requests = nil
	return record
}

// Requests returns the recorded requests without removing them.
func (c *Connection) Requests() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.requests)
}

// RoundTrip sends a request. It only returns errors of the connection; API errors are responses.
func (c *Connection) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.uncut.Err() != nil {
		return nil, ErrCut
	}
	// The body is read here, and restored for the server.
	request, ok, err := c.server.ReadRequest(r)
	if err != nil {
		return nil, err
	}
	// Discovery is not an event of the test, so it is neither recorded nor disturbed.
	if !ok {
		return c.server.RoundTrip(r)
	}
	response, err := c.sendWithHooks(r, &request)
	// The server may have processed the request, but its answer must not reach a client that is cut off.
	if c.uncut.Err() != nil {
		err, request.Code = ErrCut, 0
	}
	// Requests are recorded when they are over, so the record only has complete ones.
	c.mu.Lock()
	c.requests = append(c.requests, request)
	c.mu.Unlock()
	if err != nil {
		if response != nil {
			_ = response.Body.Close()
		}
		return nil, err
	}
	return response, nil
}

// sendWithHooks serves a request, with the hooks before and after it.
func (c *Connection) sendWithHooks(r *http.Request, request *Request) (*http.Response, error) {
	ctx := r.Context()
	if err := c.callHook(ctx, c.Before, *request); err != nil {
		return hookResponse(r, request, err)
	}
	// The body of a watch ends with its context, so After is not called for it.
	if request.Verb == "watch" {
		return c.serveWatch(r, request)
	}
	response, err := c.server.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	request.Code = response.StatusCode
	// A refused request did not take effect, so After is not called.
	if request.Code >= http.StatusBadRequest {
		return response, nil
	}
	if err := c.callHook(ctx, c.After, *request); err != nil {
		_ = response.Body.Close()
		return hookResponse(r, request, err)
	}
	return response, nil
}

// callHook calls a hook. It also fails if the connection was cut or the request's context ended while the hook ran.
func (c *Connection) callHook(ctx context.Context, hook func(context.Context, Request) error, request Request) error {
	if hook == nil {
		return ctx.Err()
	}
	err := hook(ctx, request)
	if c.uncut.Err() != nil {
		return ErrCut
	}
	return errors.Join(err, ctx.Err())
}

// serveWatch serves a watch that ends when the connection is cut.
func (c *Connection) serveWatch(r *http.Request, request *Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	// The watch ends with its request or with the connection, whichever ends first.
	stop := context.AfterFunc(c.uncut, cancel)
	response, err := c.server.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	request.Code = response.StatusCode
	response.Body = watchBody{response.Body, func() { stop(); cancel() }}
	return response, nil
}

// hookResponse turns a hook's error into a response of the API, or returns it as the error of a broken connection. Code
// 0 marks a request without an answer in the record.
func hookResponse(r *http.Request, request *Request, err error) (*http.Response, error) {
	request.Code = 0
	var status apierrors.APIStatus
	// Other errors look like a failure of the network, without an answer.
	if !errors.As(err, &status) {
		return nil, err
	}
	response := newErrorResponse(r, err)
	request.Code = response.StatusCode
	return response, nil
}

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
