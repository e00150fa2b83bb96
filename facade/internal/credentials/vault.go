package credentials

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// MaxInvalidatedDigests is the number of invalidated credentials per handler that are refused if they are returned
// again. Kopf has the same limit.
const MaxInvalidatedDigests = 3

// Options are the source of the credentials and the callbacks.
type Options struct {
	// Login returns the available credentials by handler id. It is called when no valid credentials are left. Calls
	// never overlap.
	Login func(ctx context.Context) (map[string]*Info, error)
	// Prepare applies the settings of the connection to each configuration.
	Prepare func(*rest.Config)
	// Fail is called at most once, when no credentials are left and no login can succeed, so that requests can no
	// longer be sent. It is not called for the first login, or after the context has ended.
	Fail func(error)
}

// vault holds the credentials of one connection. It may be used concurrently.
//
// A login returns a session for each handler with valid credentials. One session is in use. If it expires or is
// refused, the next one is used. If none is left, a new login starts, and all requests wait for it. A failed login is
// final.
type vault struct {
	ctx     context.Context //nolint:containedctx // the program's: a login is not that of one request
	options Options

	// mu guards the fields below. It is not held during requests or logins.
	mu                 sync.Mutex
	current            *session
	otherSessions      []*session // sessions of the other handlers, the preferred one first
	invalidatedDigests map[string][][sha256.Size]byte
	defaultNamespace   string // default namespace of the last credentials in use
	loginCount         int
	refusedLogins      int           // logins in a row whose credentials were refused at once
	loginDone          chan struct{} // closed when the current login ends; nil without one
	err                error         // final error: no login will succeed any more
}

// Connection is a connection to the API server with the credentials of the last login.
type Connection struct {
	// Config is for clients. Each of their requests has the credentials that are valid at that time.
	Config *rest.Config

	vault *vault
}

// DefaultNamespace returns the default namespace of the credentials, if any. During a login, it is that of the former
// credentials.
func (c *Connection) DefaultNamespace() string {
	c.vault.mu.Lock()
	defer c.vault.mu.Unlock()
	return c.vault.defaultNamespace
}

// Close waits for a running login. It must be called after the context of the program has ended. It returns the error
// of a failed login, but not of a cancelled one.
func (c *Connection) Close() error {
	v := c.vault
	v.mu.Lock()
	running := v.loginDone
	v.mu.Unlock()
	// The lock is released while waiting, since the login needs it.
	if running != nil {
		<-running
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	// The end of the program is not a failure of the login.
	if errors.Is(v.err, context.Canceled) {
		return nil
	}
	return v.err
}

// Connect logs in and returns the connection. No login starts after the context has ended.
func Connect(ctx context.Context, o Options) (*Connection, error) {
	v := &vault{ctx: ctx, options: o, invalidatedDigests: map[string][][sha256.Size]byte{}}
	first, err := v.currentSession(ctx)
	if err != nil {
		return nil, err
	}
	// Client-go must not add credentials of its own, which would be those of the first login forever.
	config := rest.AnonymousClientConfig(first.config)
	// Client-go makes connections for streams on its own, with the certificate of this configuration: that of the first
	// login.
	config.CertFile, config.CertData = first.config.CertFile, first.config.CertData
	config.KeyFile, config.KeyData = first.config.KeyFile, first.config.KeyData
	config.Host, config.QPS = first.server.String(), -1 // the API server's own fairness replaces client-side limits
	// Clients build their URLs from the first server, even after a change.
	base := *first.server
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return v.wrapTransport(&base, next) })
	return &Connection{Config: config, vault: v}, nil
}

// ConnectLazily returns a configuration that logs in before its first request is sent. Errors of the login are errors
// of that request.
func ConnectLazily(ctx context.Context, o Options) *rest.Config {
	v := &vault{ctx: ctx, options: o, invalidatedDigests: map[string][][sha256.Size]byte{}}
	base := &url.URL{Scheme: "http", Host: "api-server"} // a placeholder: each session rewrites it
	config := &rest.Config{Host: base.String(), QPS: -1}
	config.ContentType = runtime.ContentTypeJSON // the content type of the credentials is known too late
	config.Wrap(func(http.RoundTripper) http.RoundTripper { return &transport{v, base} })
	return config
}

// currentSession returns the current session. It waits for a login if there is none.
func (v *vault) currentSession(ctx context.Context) (*session, error) {
	for {
		s, running, err := v.sessionOrLogin()
		if s != nil || err != nil {
			return s, err
		}
		select {
		case <-running:
		// The context of the vault means that the program ends; others belong to one request.
		case <-ctx.Done():
			if ctx == v.ctx {
				<-running // the login returns a more precise error
				continue
			}
			return nil, fmt.Errorf("waiting for new credentials: %w", context.Cause(ctx))
		}
	}
}

// sessionOrLogin returns the current session, a final error, or the channel of the running login. It starts a login if
// necessary.
func (v *vault) sessionOrLogin() (s *session, running chan struct{}, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	// The next handler's credentials can be expired as well.
	for v.current != nil && v.current.info.hasExpired() {
		v.invalidate(v.current, "they have expired")
	}
	if v.current != nil || v.err != nil {
		return v.current, nil, v.err
	}
	// Only one login runs at a time; all requests wait for the same one.
	if v.loginDone == nil {
		v.loginDone = make(chan struct{})
		go v.runLogin()
	}
	return nil, v.loginDone, nil
}

// markProven records that the API server has accepted a session, which resets the count of refused logins. The flag
// avoids the lock for almost all requests.
func (v *vault) markProven(s *session) {
	if s.isProven.Swap(true) {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.refusedLogins = 0
}

// verifySession checks a session whose request was refused, and invalidates it if the API server does not accept it. It
// returns false if the session is still valid.
func (v *vault) verifySession(ctx context.Context, s *session, sent time.Time) (changed bool, err error) {
	// Concurrent requests can be refused for the same session; the first one invalidates it.
	v.mu.Lock()
	isReplaced := v.current != s
	v.mu.Unlock()
	if isReplaced {
		return true, nil
	}
	// The check sends a request, so the lock is not held and the state is compared again afterwards.
	good, err := s.isAccepted(ctx, sent)
	if good || err != nil {
		return false, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.current != s {
		return true, nil
	}
	// The login counts as refused only if none of its credentials worked.
	if !s.isProven.Load() && len(v.otherSessions) == 0 {
		v.refusedLogins++
	}
	v.invalidate(s, "the API server refuses them")
	return true, nil
}

// invalidate drops the session and switches to that of another handler, if any. The caller must hold the lock.
func (v *vault) invalidate(s *session, reason string) {
	logf.FromContext(v.ctx).Info("Dropped credentials", "handler", s.handler, "reason", reason)
	// Only the last ones are kept: their number would grow with each expiration.
	known := append(v.invalidatedDigests[s.handler], s.digest)
	v.invalidatedDigests[s.handler] = known[max(0, len(known)-MaxInvalidatedDigests):]
	s.closeIdle()
	v.current = nil
	if len(v.otherSessions) > 0 {
		v.useSessions(v.otherSessions)
		logf.FromContext(v.ctx).Info("Went on with other credentials", "handler", v.current.handler)
	}
}

// useSessions makes the first session current. The caller must hold the lock.
func (v *vault) useSessions(all []*session) {
	v.current, v.otherSessions = all[0], all[1:]
	v.defaultNamespace = v.current.info.DefaultNamespace
}

// failPermanently stores the final error, which ends all requests. The caller must hold the lock, so Fail is called in
// another goroutine.
func (v *vault) failPermanently(err error) {
	v.err = err
	if v.loginCount > 0 && v.ctx.Err() == nil && v.options.Fail != nil {
		go v.options.Fail(err)
	}
}

var errNoCredentials = errors.New("no credentials were given")
