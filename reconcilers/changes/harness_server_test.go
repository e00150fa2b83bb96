package changes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"

	kjson "sigs.k8s.io/json"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
)

// annotationsLimit is the limit of the API server for keys and values together.
const annotationsLimit = 256 * 1024

// server is an API server with one object.
type server struct {
	api               *memapi.Server
	statusSubresource bool // see serveStatus
	// before is called ahead of each write, after follows each write that took effect; the number counts from 1. They
	// may edit the object or sleep longer than any timeout; an error becomes the answer.
	before, after func(write) error
	// schema refuses contents; webhook changes them.
	schema  func(body map[string]any) error
	webhook func(body map[string]any)

	mu         sync.Mutex
	writeCount int
	writes     []string // targets and answers of the writes, such as "main 200"
	reads      int
}

// write is one PATCH request.
type write struct {
	number int
	status bool
	patch  map[string]any
	done   <-chan struct{} // closed when the client stops waiting
}

func newServer() *server {
	s := &server{api: memapi.New()}
	s.serveStatus(false)
	s.api.SetAdmission(memapi.Admission{
		Mutate: func(_ memapi.Resource, body map[string]any) {
			if s.webhook != nil {
				s.webhook(body)
			}
		},
		Validate: func(_ memapi.Resource, body map[string]any) error {
			if s.schema != nil {
				return s.schema(body)
			}
			return nil
		},
	})
	return s
}

// serveStatus serves the status as a subresource, or together with the rest.
func (s *server) serveStatus(subresource bool) {
	s.statusSubresource = subresource
	s.api.Install(s.resource())
}

func (s *server) resource() memapi.Resource {
	return memapi.Resource{
		Group: "example.org", Version: "v1", Kind: "Example", Plural: "examples", Namespaced: true,
		StatusSubresource: s.statusSubresource,
	}
}

// link is the connection of one process to the server.
type link struct {
	patching.PatchClient
	*memapi.Connection
	server *server
}

// numberKey is the context key for the number of a write.
type numberKey struct{}

func (s *server) connect(t testing.TB) *link {
	t.Helper()
	l := &link{server: s, Connection: s.api.Connect()}
	l.Before = func(ctx context.Context, r memapi.Request) error { return callHook(ctx, r, s.before) }
	l.After = func(ctx context.Context, r memapi.Request) error { return callHook(ctx, r, s.after) }
	l.PatchClient = patching.NewObjectClient(memapi.Config(l), &http.Client{Transport: l},
		s.resource().GroupVersionResource())
	return l
}

func callHook(ctx context.Context, r memapi.Request, hook func(write) error) error {
	if r.Verb != "patch" || hook == nil {
		return nil
	}
	w := write{status: r.Subresource != "", done: ctx.Done()}
	w.number, _ = ctx.Value(numberKey{}).(int)
	w.patch, _ = decoded(r.Body).(map[string]any)
	return hook(w)
}

// RoundTrip counts the requests and records the answers to writes.
func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.Connection.RoundTrip(l.counted(r))
	if r.Method == http.MethodPatch {
		l.server.note(l.DrainRequests())
	}
	return response, err
}

func (l *link) counted(r *http.Request) *http.Request {
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	if r.Method == http.MethodGet {
		l.server.reads++
		return r
	}
	l.server.writeCount++
	return r.WithContext(context.WithValue(r.Context(), numberKey{}, l.server.writeCount))
}

func (s *server) note(requests []memapi.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range requests {
		where, code := "main", fmt.Sprint(r.Code)
		if r.Subresource != "" {
			where = r.Subresource
		}
		switch {
		case r.Verb != "patch":
			continue
		case r.Code == 0:
			code = "lost"
		}
		s.writes = append(s.writes, where+" "+code)
	}
}

func encoded(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return data
}

func decoded(data []byte) any {
	var out any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &out); err != nil {
		panic(err)
	}
	return out
}

func copied(body map[string]any) map[string]any { return decoded(encoded(body)).(map[string]any) }

// at returns the value at a path of keys, or nil if it does not exist.
func at(body any, path ...string) any {
	for _, key := range path {
		mapping, _ := body.(map[string]any)
		body = mapping[key]
	}
	return body
}
