package credentials_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
)

// server is an API server that accepts some tokens. Each answer takes a second.
type server struct {
	mu            sync.Mutex
	tokens        map[string]bool
	forbiddenPath string // a path that is refused with any token
	slowPath      string // a path whose answers take an hour to arrive
	seenRequests  []string
	downErr       error

	apiErr error // returned instead of an answer of /api
}

func newServer(tokens ...string) *server {
	s := &server{tokens: map[string]bool{}}
	s.allow(tokens...)
	return s
}

func (s *server) allow(tokens ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
	for _, token := range tokens {
		s.tokens[token] = true
	}
}

// RoundTrip answers with the body of the request, or with 401.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(time.Second)
	if r.URL.Path == s.slowPath {
		defer time.Sleep(time.Hour) // without holding the lock
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	body := ""
	if r.Body != nil {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(data)
	}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.seenRequests = append(s.seenRequests, r.URL.Host+r.URL.Path+" "+token)
	if s.downErr != nil {
		return nil, s.downErr
	}
	if s.apiErr != nil && r.URL.Path == "/api" {
		return nil, s.apiErr
	}
	code := http.StatusOK
	if !s.tokens[token] || s.forbiddenPath == r.URL.Path {
		code = http.StatusUnauthorized
	}
	return &http.Response{
		StatusCode: code, Request: r, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.seenRequests...)
}

// info returns credentials for the server.
func (s *server) info(token string) *credentials.Info {
	return &credentials.Info{Server: "http://api", Token: token, Config: &rest.Config{Transport: s}}
}

// program is a client of the server.
type program struct {
	t          *testing.T
	client     *http.Client
	host       string
	loginCount int
	finalErr   error

	defaultNamespace func() string // the default one
}

// start logs in with the credentials that give returns for the n-th login.
func start(
	ctx context.Context, t *testing.T, give func(n int) (map[string]*credentials.Info, error),
) (*program, error) {
	t.Helper()
	p := &program{t: t}
	connection, err := credentials.Connect(ctx, credentials.Options{
		Login: func(context.Context) (map[string]*credentials.Info, error) {
			p.loginCount++
			return give(p.loginCount)
		},
		Prepare: func(*rest.Config) {}, Fail: func(err error) { p.finalErr = err },
	})
	if err != nil {
		return p, err
	}
	p.host, p.defaultNamespace = connection.Config.Host, connection.DefaultNamespace
	p.client, err = rest.HTTPClientFor(connection.Config)
	return p, err
}

// giveTokens returns a login function that gives one token after another, and then the last one.
func giveTokens(s *server, tokens ...string) func(int) (map[string]*credentials.Info, error) {
	return func(n int) (map[string]*credentials.Info, error) {
		return map[string]*credentials.Info{"fn": s.info(tokens[min(n, len(tokens))-1])}, nil
	}
}

// send returns the code and the body of the answer.
func (p *program) send(ctx context.Context, path, body string) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, p.host+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	answer, err := p.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	data, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(data), errors.Join(err, answer.Body.Close())
}
