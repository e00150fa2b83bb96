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

// checkTimeout limits the request that checks whether the API server accepts the credentials.
const checkTimeout = 10 * time.Second

// session is a connection with the credentials of one handler. It is immutable, except for the state of its checks.
type session struct {
	handler   string
	info      *Info
	digest    [sha256.Size]byte // at the time of the login
	config    *rest.Config
	server    *url.URL
	transport http.RoundTripper

	isProven  atomic.Bool   // the API server has accepted the credentials
	checkLock chan struct{} // one slot: one check at a time, with a cancellable wait
	lastCheck time.Time     // start of the last check; guarded by the gate
	isRefused bool          // result of the last check; guarded by the gate
}

// openSession returns a session for the credentials. It sends nothing.
func openSession(handler string, info *Info, prepare func(*rest.Config)) (*session, error) {
	config, err := info.toConfig()
	if err != nil {
		return nil, err
	}
	// The settings of the connection apply to all credentials.
	prepare(config)
	s := &session{handler: handler, info: info, config: config, checkLock: make(chan struct{}, 1)}
	if s.server, _, err = rest.DefaultServerUrlFor(config); err != nil {
		return nil, fmt.Errorf("field Server: %w", err)
	}
	if s.transport, err = rest.TransportFor(config); err != nil {
		return nil, err
	}
	return s, nil
}

// closeIdle closes idle connections. Running requests continue.
func (s *session) closeIdle() {
	if s.config.Transport == nil { // otherwise the transport belongs to the user
		utilnet.CloseIdleConnectionsFor(s.transport)
	}
}

// requestCopy returns a copy of the request for the server of this session. It can be called once per attempt if the
// body can be read again.
func (s *session) requestCopy(r *http.Request, base *url.URL) (*http.Request, error) {
	// A request of the caller must not be modified, and it is needed again for another attempt.
	own := r.Clone(r.Context())
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		own.Body = body
	}
	// The common case: all sessions use the same server.
	if *s.server == *base {
		return own, nil
	}
	// The new login has another server, so the URL of the request is rewritten below its base path.
	own.Host = ""
	own.URL.Scheme, own.URL.Host = s.server.Scheme, s.server.Host
	own.URL.Path = path.Join("/", s.server.Path, strings.TrimPrefix(r.URL.Path, strings.TrimSuffix(base.Path, "/")))
	own.URL.RawPath = ""
	return own, nil
}

// isAccepted checks whether the API server accepts the credentials at all. A single 401 can have another reason: an
// aggregated API server with its own problem, or a service behind the proxy of the API server.
//
// A check that began after since is not repeated. It requests the list of API versions, which every authenticated user
// may read. Other paths, such as /version, are often readable without credentials and would not prove anything.
func (s *session) isAccepted(ctx context.Context, since time.Time) (bool, error) {
	select {
	case s.checkLock <- struct{}{}:
		defer func() { <-s.checkLock }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	// Many requests fail at the same time, and one check answers all of them. Refused credentials never become valid
	// again.
	if s.isRefused || s.lastCheck.After(since) {
		return !s.isRefused, nil
	}
	// The start counts, since the answer can reflect the state at any later time.
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.server.JoinPath("api").String(), http.NoBody)
	if err != nil {
		return false, err
	}
	answer, err := s.transport.RoundTrip(r)
	if err != nil {
		return false, fmt.Errorf("asking whether the credentials are good: %w", err)
	}
	_ = answer.Body.Close()
	s.isRefused, s.lastCheck = answer.StatusCode == http.StatusUnauthorized, began
	return !s.isRefused, nil
}
