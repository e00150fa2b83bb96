package credentials

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// checkTimeout is how long the API server may take to say whether it knows the credentials at all.
const checkTimeout = 10 * time.Second

// session is a connection with the credentials of one handler.
type session struct {
	handler  string
	info     *Info
	identity [sha256.Size]byte // as of the login
	config   *rest.Config
	server   *url.URL
	send     http.RoundTripper

	works   atomic.Bool   // the API server has taken the credentials
	gate    chan struct{} // has room for one check at a time
	checked time.Time     // when the last check began; behind the gate
	bad     bool          // what it found; behind the gate
}

// open makes the session of the credentials. It sends nothing.
func open(handler string, info *Info, prepare func(*rest.Config)) (*session, error) {
	config, err := info.configuration()
	if err != nil {
		return nil, err
	}
	prepare(config)
	s := &session{handler: handler, info: info, config: config, gate: make(chan struct{}, 1)}
	if s.server, _, err = rest.DefaultServerUrlFor(config); err != nil {
		return nil, fmt.Errorf("field Server: %w", err)
	}
	if s.send, err = rest.TransportFor(config); err != nil {
		return nil, err
	}
	return s, nil
}

// close leaves the requests alone that are on their way.
func (s *session) close() {
	if s.config.Transport == nil { // else it is somebody else's
		utilnet.CloseIdleConnectionsFor(s.send)
	}
}

// request is the request to the server of this session, as often as its body can be had.
func (s *session) request(r *http.Request, base *url.URL) (*http.Request, error) {
	own := r.Clone(r.Context())
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		own.Body = body
	}
	if *s.server == *base {
		return own, nil
	}
	own.Host = ""
	own.URL.Scheme, own.URL.Host = s.server.Scheme, s.server.Host
	own.URL.Path = path.Join("/", s.server.Path, strings.TrimPrefix(r.URL.Path, strings.TrimSuffix(base.Path, "/")))
	own.URL.RawPath = ""
	return own, nil
}

// good asks the API server whether it knows the credentials. A refusal may have another reason than they: an extension
// of the API that has trouble of its own, or a service behind the proxy of the API server. An answer that was asked for
// after that time is good enough. What is asked for is the list of versions of the API, which every user may read, and
// nobody else: others, such as /version, proxies tend to give to anybody.
func (s *session) good(ctx context.Context, since time.Time) (bool, error) {
	select {
	case s.gate <- struct{}{}:
		defer func() { <-s.gate }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if s.bad || s.checked.After(since) {
		return !s.bad, nil
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.server.JoinPath("api").String(), http.NoBody)
	if err != nil {
		return false, err
	}
	answer, err := s.send.RoundTrip(r)
	if err != nil {
		return false, fmt.Errorf("asking whether the credentials are good: %w", err)
	}
	_ = answer.Body.Close()
	s.bad, s.checked = answer.StatusCode == http.StatusUnauthorized, began
	return !s.bad, nil
}
