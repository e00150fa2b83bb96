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

// watchCounter counts the open watches of a resource, or of all resources.
type watchCounter struct {
	http.RoundTripper
	plural string
	open   atomic.Int64
}

func (w *watchCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := w.RoundTripper.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusOK && r.URL.Query().Get("watch") != "" &&
		(w.plural == "" || strings.HasSuffix(r.URL.Path, "/"+w.plural)) {
		w.open.Add(1)
		response.Body = &notifyingBody{ReadCloser: response.Body, onClose: func() { w.open.Add(-1) }}
	}
	return response, err
}

// notifyingBody calls a function when the body is closed for the first time.
type notifyingBody struct {
	io.ReadCloser
	onClose func()
	done    atomic.Bool
}

func (c *notifyingBody) Close() error {
	if !c.done.Swap(true) {
		c.onClose()
	}
	return c.ReadCloser.Close()
}

// delayLists returns a connection that delays the lists and watches of one resource.
func delayLists(server *memapi.Server, plural string, lag func() time.Duration) *memapi.Connection {
	return interceptRequests(server, func(ctx context.Context, r memapi.Request) int {
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
	return interceptRequests(server, func(_ context.Context, r memapi.Request) int {
		if r.Resource.Plural == plural && (r.Verb == "list" || r.Verb == "watch") {
			return code
		}
		return 0
	})
}

// refusePatches returns a connection that refuses patches with the code, unless it is zero.
func refusePatches(server *memapi.Server, code func(patch string) int) *memapi.Connection {
	return interceptRequests(server, func(_ context.Context, r memapi.Request) int {
		if r.Verb == "patch" {
			return code(string(r.Body))
		}
		return 0
	})
}

func interceptRequests(
	server *memapi.Server, refuse func(ctx context.Context, r memapi.Request) int,
) *memapi.Connection {
	connection := server.Connect()
	connection.Before = func(ctx context.Context, r memapi.Request) error {
		if code := refuse(ctx, r); code != 0 {
			return memapi.NewRefusal(code)
		}
		return nil
	}
	return connection
}
