package memapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ErrCut is what clients get from a connection after [Connection.Cut].
var ErrCut = errors.New("the connection is cut")

// Connection is the way of one client to the server, such as that of one process: it can be disturbed, recorded and
// cut. It is an http.RoundTripper, to be put into a configuration: see [Config]. Requests for anything but objects,
// such as discovery, pass undisturbed and unrecorded.
//
// Before and After are set before the first request. They run without any lock, so they may change objects of the
// server and take their time; if the request's context ends meanwhile, that is its answer. An error for which
// errors.As finds an apierrors.APIStatus is the API server's refusal; any other one is that of a broken connection.
type Connection struct {
	// Before is called ahead of each request. After an error of it the server never sees the request.
	Before func(ctx context.Context, r Request) error
	// After is called when a request was served with success, except for watches, whose answer never ends. It took
	// effect; an error takes the place of its answer.
	After func(ctx context.Context, r Request) error

	server *Server
	cut    chan struct{}
	once   sync.Once
	mu     sync.Mutex
	record []Request
}

var _ http.RoundTripper = (*Connection)(nil)

// Connect makes a connection to the server.
func (s *Server) Connect() *Connection { return &Connection{server: s, cut: make(chan struct{})} }

// Cut ends the connection for good: running watches end, no request reaches the server any more, and no answer reaches
// the client. A request that is being served takes effect nevertheless.
func (c *Connection) Cut() { c.once.Do(func() { close(c.cut) }) }

// Drain gives the requests that were answered, refused or lost since it was called last, in that order.
func (c *Connection) Drain() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	record := c.record
	c.record = nil
	return record
}

// Requests are those that the next Drain will give.
func (c *Connection) Requests() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.record)
}

// RoundTrip sends a request. Its errors are those of the connection; the API's are answers.
func (c *Connection) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.isCut() {
		return nil, ErrCut
	}
	request, ok, err := c.server.ReadRequest(r)
	if err != nil {
		return nil, err
	}
	if !ok {
		return c.server.RoundTrip(r)
	}
	response, err := c.send(r, &request)
	if c.isCut() {
		err, request.Code = ErrCut, 0
	}
	c.mu.Lock()
	c.record = append(c.record, request)
	c.mu.Unlock()
	if err != nil {
		if response != nil {
			_ = response.Body.Close()
		}
		return nil, err
	}
	return response, nil
}

// send asks the hooks and serves the request between them.
func (c *Connection) send(r *http.Request, request *Request) (*http.Response, error) {
	ctx := r.Context()
	if err := c.ask(ctx, c.Before, *request); err != nil {
		return refused(r, request, err)
	}
	if request.Verb == "watch" {
		return c.watch(r, request)
	}
	response, err := c.server.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	request.Code = response.StatusCode
	if request.Code >= http.StatusBadRequest {
		return response, nil
	}
	if err := c.ask(ctx, c.After, *request); err != nil {
		_ = response.Body.Close()
		return refused(r, request, err)
	}
	return response, nil
}

// ask calls a hook. What has happened to the client meanwhile counts as well.
func (c *Connection) ask(ctx context.Context, hook func(context.Context, Request) error, request Request) error {
	if hook == nil {
		return ctx.Err()
	}
	err := hook(ctx, request)
	if c.isCut() {
		return ErrCut
	}
	return errors.Join(err, ctx.Err())
}

// watch serves a watch that ends with the connection.
func (c *Connection) watch(r *http.Request, request *Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	go func() {
		defer cancel()
		select {
		case <-c.cut:
		case <-ctx.Done():
		}
	}()
	response, err := c.server.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	request.Code = response.StatusCode
	response.Body = closing{response.Body, cancel}
	return response, nil
}

// closing tells when the client closes the body.
type closing struct {
	io.ReadCloser
	closed func()
}

// Close closes the body.
func (c closing) Close() error {
	c.closed()
	return c.ReadCloser.Close()
}

func (c *Connection) isCut() bool {
	select {
	case <-c.cut:
		return true
	default:
		return false
	}
}

// refused turns a hook's error into an answer of the API, or into that of a broken connection.
func refused(r *http.Request, request *Request, err error) (*http.Response, error) {
	request.Code = 0
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil, err
	}
	response := refuse(r, err)
	request.Code = response.StatusCode
	return response, nil
}
