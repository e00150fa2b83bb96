package reconcilers_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// watched counts the open watches of a resource, or of all resources.
type watched struct {
	http.RoundTripper
	plural string
	open   atomic.Int64
}

func (w *watched) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := w.RoundTripper.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusOK && r.URL.Query().Get("watch") != "" &&
		(w.plural == "" || strings.HasSuffix(r.URL.Path, "/"+w.plural)) {
		w.open.Add(1)
		response.Body = &closing{ReadCloser: response.Body, closed: func() { w.open.Add(-1) }}
	}
	return response, err
}

// closing calls a function when the body is closed for the first time.
type closing struct {
	io.ReadCloser
	closed func()
	done   atomic.Bool
}

func (c *closing) Close() error {
	if !c.done.Swap(true) {
		c.closed()
	}
	return c.ReadCloser.Close()
}

// delaying returns a connection that delays the lists and watches of one resource.
func delaying(server *memapi.Server, plural string, lag func() time.Duration) *memapi.Connection {
	return disturbing(server, func(ctx context.Context, r memapi.Request) int {
		if r.Resource.Plural == plural && (r.Verb == "list" || r.Verb == "watch") {
			select {
			case <-ctx.Done():
			case <-time.After(lag()):
			}
		}
		return 0
	})
}

func steady(lag time.Duration) func() time.Duration { return func() time.Duration { return lag } }

// unavailable returns a connection on which one resource is served, but cannot be listed or watched: its conversion
// webhook is down, or the operator lacks the permission.
func unavailable(server *memapi.Server, plural string, code int) *memapi.Connection {
	return disturbing(server, func(_ context.Context, r memapi.Request) int {
		if r.Resource.Plural == plural && (r.Verb == "list" || r.Verb == "watch") {
			return code
		}
		return 0
	})
}

// failing returns a connection that refuses patches with the code, unless it is zero.
func failing(server *memapi.Server, code func(patch string) int) *memapi.Connection {
	return disturbing(server, func(_ context.Context, r memapi.Request) int {
		if r.Verb == "patch" {
			return code(string(r.Body))
		}
		return 0
	})
}

func disturbing(server *memapi.Server, refuse func(ctx context.Context, r memapi.Request) int) *memapi.Connection {
	connection := server.Connect()
	connection.Before = func(ctx context.Context, r memapi.Request) error {
		if code := refuse(ctx, r); code != 0 {
			return memapi.NewRefusal(code)
		}
		return nil
	}
	return connection
}
