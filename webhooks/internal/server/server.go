package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

const (
	// DefaultBodyLimit is enough for two states of an object, each of the maximum size that the API server accepts.
	DefaultBodyLimit = 7 << 20
	// defaultMemoryLimit is enough for the largest objects that can be stored, and for several ordinary ones at the
	// same time.
	defaultMemoryLimit = 96 << 20
	// DefaultReadTimeout is short, because an API server has the whole review in memory before it sends the first byte.
	DefaultReadTimeout = 10 * time.Second
)

// ReviewFunc answers reviews, any number of them at the same time, like [review.Reviewer]. [review.StatusOf] returns
// the HTTP status of its errors.
type ReviewFunc interface {
	// Review answers one review.
	Review(ctx context.Context, request review.EndpointRequest) (review.Response, error)
}

// Endpoint is a path and the handlers that its requests call.
type Endpoint struct {
	// Path is relative to that of the server, and not escaped, such as "validate/quota". Empty means the path of the
	// server itself.
	Path string
	// Handler is the id of the handlers. Empty means all handlers, and is required for an empty path.
	Handler string
	// Type is "validating" or "mutating"; empty means both.
	Type string
}

// Options configure a Server.
type Options struct {
	// Operator is the name of the operator, for messages.
	Operator string
	// Path is the common prefix of all endpoints. It starts with a slash, and does not end with one; empty means the
	// root.
	Path string
	// Endpoints are all endpoints. Other paths have the status 404. Kopf responds at any path, and allows the request
	// if there is no such handler (deviation D-admission-root).
	Endpoints []Endpoint
	// AtRoot also serves the endpoints below the root, unless that is taken, for configurations that were written for
	// Kopf.
	AtRoot bool
	// Reviewer answers the reviews.
	Reviewer ReviewFunc
	// ReviewsReady is closed when reviews can be answered, for example when the indices are filled. Before that, the
	// status is
	// 503. Nil means from the start.
	ReviewsReady <-chan struct{}
	// BodyLimit is the maximum size of a request in bytes; zero means [DefaultBodyLimit]. Larger ones have the status
	// 413.
	BodyLimit int64
	// MemoryLimit is the maximum size, in bytes, of the values of all reviews together, as estimated from their texts;
	// zero means 96 MiB. The texts may use two thirds of it in addition. If it is exceeded, reviews wait for a second.
	// After that, the status is 503, with the header Retry-After. A review that exceeds it alone has the status 413. A
	// part of the memory is reserved for deletions, and a part for small reviews.
	MemoryLimit int64
	// ReadTimeout is how long a client may take to send a request; zero means [DefaultReadTimeout]. After that, the
	// status is 408.
	ReadTimeout time.Duration
	// Log gets errors of this process and, at the debug level, errors of requests.
	Log logr.Logger
}

// Server serves the reviews of one operator. It is an [http.Handler] for its path and all paths below it.
type Server struct {
	options Options
	// endpoints contains the endpoints by their paths.
	endpoints map[string]Endpoint
	pool      pool
}

// New returns a server. It returns an error if a path cannot be served, or if two handlers have the same path.
func New(o Options) (*Server, error) {
	// Braces and spaces have a meaning in the patterns of http.ServeMux.
	if strings.ContainsAny(o.Path, "{} ") || !isCleanPath(strings.TrimPrefix(o.Path, "/")) || !isRooted(o.Path) {
		return nil, fmt.Errorf("the path %q of webhooks cannot be served: write one such as %q", o.Path, "/webhooks")
	}
	s := &Server{options: o}
	s.options.BodyLimit = cmp.Or(o.BodyLimit, DefaultBodyLimit)
	s.pool.memoryLimit, s.pool.incompleteBodies = cmp.Or(o.MemoryLimit, defaultMemoryLimit), map[*requestBody]bool{}
	s.options.ReadTimeout = cmp.Or(o.ReadTimeout, DefaultReadTimeout)
	s.endpoints = make(map[string]Endpoint, len(o.Endpoints))
	for _, endpoint := range o.Endpoints {
		if endpoint.Path == "" && endpoint.Handler != "" || !isCleanPath(endpoint.Path) {
			return nil, fmt.Errorf("the id %q of a handler of admission cannot be in the path of a URL: "+
				"leave out empty parts, dots alone, and slashes at the ends", endpoint.Handler)
		}
		if other, taken := s.endpoints[endpoint.Path]; taken {
			return nil, fmt.Errorf("the handlers %q and %q of admission would both be served at the path %q: "+
				"give one of them another id", other.Handler, endpoint.Handler, s.options.Path+"/"+endpoint.Path)
		}
		s.endpoints[endpoint.Path] = endpoint
	}
	return s, nil
}

// isRooted reports whether the path is empty or begins with a slash.
func isRooted(of string) bool { return of == "" || strings.HasPrefix(of, "/") }

// isCleanPath reports whether http.ServeMux leaves a path unchanged. It redirects other paths, which the API server
// does not follow.
func isCleanPath(below string) bool { return below == "" || path.Clean("/"+below) == "/"+below }

// CheckReadiness is a readiness check. It fails until reviews can be answered. It is a healthz.Checker of
// controller-runtime.
func (s *Server) CheckReadiness(*http.Request) error {
	select {
	case <-s.options.ReviewsReady:
		return nil
	default:
	}
	// A nil channel never becomes ready, but means that there is nothing to wait for.
	if s.options.ReviewsReady == nil {
		return nil
	}
	return fmt.Errorf("operator %q cannot answer admission requests yet: its indices are not filled",
		s.options.Operator)
}

// findEndpoint returns the endpoint of a decoded path.
func (s *Server) findEndpoint(whole string) (Endpoint, bool) {
	below, under := strings.CutPrefix(whole, s.options.Path)
	// The path can begin with the prefix, but continue in the same segment.
	if !under || !isRooted(below) {
		if !s.options.AtRoot {
			return Endpoint{}, false
		}
		below = whole
	}
	endpoint, known := s.endpoints[strings.TrimPrefix(below, "/")]
	return endpoint, known
}
