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

// Remembered is how many invalidated credentials of each handler are not accepted again. Kopf has the same.
const Remembered = 3

// Login gives the credentials that there are, by the ids of the handlers.
type Login func(ctx context.Context) (map[string]*Info, error)

// Options say where credentials come from.
type Options struct {
	// Login is called when there are no credentials that are good, once at a time.
	Login Login
	// Prepare puts the settings of the connection into each configuration.
	Prepare func(*rest.Config)
	// Fail is called, once, when there are no credentials any more, and never will be: nothing can be sent then. It is
	// not called for the first login, nor when the context has ended.
	Fail func(error)
}

// vault has the credentials. It may be used concurrently.
type vault struct {
	ctx     context.Context //nolint:containedctx // the program's: a login is not that of one request
	options Options

	mu       sync.Mutex
	current  *session
	rest     []*session // those of the other handlers, the best one first
	refused  map[string][][sha256.Size]byte
	defaults string // the default namespace of those that are, or were, in use
	logins   int
	unproven int           // logins in a row whose credentials the API server has refused at once
	running  chan struct{} // closed when the login that is running has ended; nil if none is
	err      error         // why there will be no credentials any more
}

// Connection is to the API server, as whoever logged in last.
type Connection struct {
	// Config is for clients: their requests always have the credentials that are good at their time.
	Config *rest.Config

	vault *vault
}

// DefaultNamespace is that of the credentials, if they have one; during a login, of those before it.
func (c *Connection) DefaultNamespace() string {
	c.vault.mu.Lock()
	defer c.vault.mu.Unlock()
	return c.vault.defaults
}

// Close waits for the login that runs, if one does, when the context of the program has ended. The error is that of a
// login that did not end by itself.
func (c *Connection) Close() error {
	v := c.vault
	v.mu.Lock()
	running := v.running
	v.mu.Unlock()
	if running != nil {
		<-running
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if errors.Is(v.err, context.Canceled) {
		return nil
	}
	return v.err
}

// Connect logs in. No login begins when the context has ended.
func Connect(ctx context.Context, o Options) (*Connection, error) {
	v := &vault{ctx: ctx, options: o, refused: map[string][][sha256.Size]byte{}}
	first, err := v.session(ctx)
	if err != nil {
		return nil, err
	}
	config := rest.AnonymousClientConfig(first.config)
	// Connections for streams are made by others, who take the certificate from here: it is that of the first login.
	config.CertFile, config.CertData = first.config.CertFile, first.config.CertData
	config.KeyFile, config.KeyData = first.config.KeyFile, first.config.KeyData
	config.Host, config.QPS = first.server.String(), -1 // the server's own fairness is better than a limit on this side
	base := *first.server
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return v.around(&base, next) })
	return &Connection{Config: config, vault: v}, nil
}

// ConnectLate is a configuration for clients that logs in before their first request is sent.
func ConnectLate(ctx context.Context, o Options) *rest.Config {
	v := &vault{ctx: ctx, options: o, refused: map[string][][sha256.Size]byte{}}
	base := &url.URL{Scheme: "http", Host: "api-server"} // each session has its own
	config := &rest.Config{Host: base.String(), QPS: -1}
	config.ContentType = runtime.ContentTypeJSON // what the credentials say of it comes too late
	config.Wrap(func(http.RoundTripper) http.RoundTripper { return &transport{v, base} })
	return config
}

// session waits for credentials that are good, as far as one knows.
func (v *vault) session(ctx context.Context) (*session, error) {
	for {
		s, running, err := v.look()
		if s != nil || err != nil {
			return s, err
		}
		select {
		case <-running:
		case <-ctx.Done():
			if ctx == v.ctx {
				<-running // it knows more about the end
				continue
			}
			return nil, fmt.Errorf("waiting for new credentials: %w", context.Cause(ctx))
		}
	}
}

// look begins a login if it has to be.
func (v *vault) look() (s *session, running chan struct{}, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for v.current != nil && v.current.info.expired() {
		v.invalidate(v.current, "they have expired")
	}
	if v.current != nil || v.err != nil {
		return v.current, nil, v.err
	}
	if v.running == nil {
		v.running = make(chan struct{})
		go v.login()
	}
	return nil, v.running, nil
}

// proven takes note of what the API server has taken.
func (v *vault) proven(s *session) {
	if s.works.Swap(true) {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.unproven = 0
}

// doubt finds out about credentials that were refused. It returns false if they are good nevertheless.
func (v *vault) doubt(ctx context.Context, s *session, sent time.Time) (changed bool, err error) {
	if v.replaced(s) {
		return true, nil
	}
	good, err := s.good(ctx, sent)
	if good || err != nil {
		return false, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.current != s {
		return true, nil
	}
	if !s.works.Load() && len(v.rest) == 0 {
		v.unproven++
	}
	v.invalidate(s, "the API server refuses them")
	return true, nil
}

func (v *vault) replaced(s *session) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.current != s
}

// invalidate goes on with the credentials of another handler, if there are any. The caller holds the lock.
func (v *vault) invalidate(s *session, reason string) {
	logf.FromContext(v.ctx).Info("Dropped credentials", "handler", s.handler, "reason", reason)
	known := append(v.refused[s.handler], s.identity)
	v.refused[s.handler] = known[max(0, len(known)-Remembered):]
	s.close()
	v.current = nil
	if len(v.rest) > 0 {
		v.use(v.rest)
		logf.FromContext(v.ctx).Info("Went on with other credentials", "handler", v.current.handler)
	}
}

// use goes on with the first of these credentials. The caller holds the lock.
func (v *vault) use(all []*session) {
	v.current, v.rest = all[0], all[1:]
	v.defaults = v.current.info.DefaultNamespace
}

// fail ends all that needs credentials. The caller holds the lock.
func (v *vault) fail(err error) {
	v.err = err
	if v.logins > 0 && v.ctx.Err() == nil && v.options.Fail != nil {
		go v.options.Fail(err)
	}
}

var errNothing = errors.New("no credentials were given")
