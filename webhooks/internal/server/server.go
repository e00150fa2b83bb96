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
	// DefaultBodyLimit is enough for an object and its predecessor, each as large as the API server takes them.
	DefaultBodyLimit = 7 << 20
	// defaultMemory is enough for the largest objects that can be stored, and for several of the usual kind.
	defaultMemory = 96 << 20
	// DefaultReadTimeout is short, as the API server has the whole review in memory when it sends the first byte.
	DefaultReadTimeout = 10 * time.Second
)

// Reviewer answers reviews, as a [review.Reviewer] does: any number of them at once. The HTTP status of an error is
// that of [review.StatusOf].
type Reviewer interface {
	Review(ctx context.Context, request review.Request) (review.Response, error)
}

// Endpoint is a path with the handlers that requests to it are for.
type Endpoint struct {
	// Path is below that of the server, and not escaped, such as "validate/quota"; empty is the path of the server
	// itself.
	Path string
	// Handler is the id of the handlers; empty is all of them, and is the only one that can be at an empty path.
	Handler string
	// Type is "validating" or "mutating"; empty is either.
	Type string
}

// Options say what is served, and how.
type Options struct {
	// Operator is the name of the operator, for messages.
	Operator string
	// Path is what all endpoints are below of: it begins with a slash, and does not end with one; empty is the root.
	Path string
	// Endpoints are all that there are. The status of any other path is 404. Kopf: any path is answered, and allows
	// the request where there is no such handler (deviation D-admission-root).
	Endpoints []Endpoint
	// AtRoot serves the endpoints below the root as well, unless that is taken, for configurations that were written
	// for Kopf.
	AtRoot bool
	// Reviewer answers.
	Reviewer Reviewer
	// Open is closed when reviews can be answered, such as when the indices are filled; before, the status is 503. Nil
	// is from the start.
	Open <-chan struct{}
	// BodyLimit is how large a request may be, in bytes; zero is [DefaultBodyLimit]. Beyond, the status is 413.
	BodyLimit int64
	// Memory is how many bytes the values of all reviews may take at once, as far as that can be estimated from their
	// texts; zero is 96 MiB. The texts may take two thirds of it in addition. Beyond, reviews wait for a second; then
	// the status is 503, with the header Retry-After. A review that takes more by itself has the status 413. A part of
	// the memory is reserved for deletions, and a part for small reviews.
	Memory int64
	// ReadTimeout is how long a client may take to send a request; zero is [DefaultReadTimeout]. After that, the status
	// is 408.
	ReadTimeout time.Duration
	// Log gets what is wrong here, and at the level of debugging what is wrong with requests.
	Log logr.Logger
}

// Server serves the reviews of one operator. It is an [http.Handler] for its path, and for what is below of it.
type Server struct {
	options   Options
	endpoints map[string]Endpoint
	pool      pool
}

// New makes a server. A path that cannot be served, or that is of two handlers, is an error.
func New(o Options) (*Server, error) {
	if strings.ContainsAny(o.Path, "{} ") || !clean(strings.TrimPrefix(o.Path, "/")) || !rooted(o.Path) {
		return nil, fmt.Errorf("the path %q of webhooks cannot be served: write one such as %q", o.Path, "/webhooks")
	}
	s := &Server{options: o}
	s.options.BodyLimit = cmp.Or(o.BodyLimit, DefaultBodyLimit)
	s.pool.limit, s.pool.reading = cmp.Or(o.Memory, defaultMemory), map[*intake]bool{}
	s.options.ReadTimeout = cmp.Or(o.ReadTimeout, DefaultReadTimeout)
	s.endpoints = make(map[string]Endpoint, len(o.Endpoints))
	for _, endpoint := range o.Endpoints {
		if endpoint.Path == "" && endpoint.Handler != "" || !clean(endpoint.Path) {
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

// rooted tells whether the path is empty or begins with a slash.
func rooted(of string) bool { return of == "" || strings.HasPrefix(of, "/") }

// clean tells whether a path arrives as it is sent: multiplexers redirect others, and the API server does not follow.
func clean(below string) bool { return below == "" || path.Clean("/"+below) == "/"+below }

// Check is a check of readiness: an error until reviews can be answered. It is a healthz.Checker of controller-runtime.
func (s *Server) Check(*http.Request) error {
	select {
	case <-s.options.Open:
		return nil
	default:
	}
	if s.options.Open == nil {
		return nil
	}
	return fmt.Errorf("operator %q cannot answer admission requests yet: its indices are not filled",
		s.options.Operator)
}

// find gives the endpoint of a path, as it comes decoded.
func (s *Server) find(whole string) (Endpoint, bool) {
	below, under := strings.CutPrefix(whole, s.options.Path)
	if !under || !rooted(below) {
		if !s.options.AtRoot {
			return Endpoint{}, false
		}
		below = whole
	}
	endpoint, known := s.endpoints[strings.TrimPrefix(below, "/")]
	return endpoint, known
}
