package transport

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Fence detects that the manager does not wait for the operator any more: because the lease of the leader was lost, or
// because the time for its exit is over. From then on, the operator must not do anything, because another process may
// lead, and this one is about to end. A manager ends its caches when everything that needs a leader has ended, or when
// it stops waiting for that. So the Fence registers as a cache, and stands until it is stopped like one.
type Fence struct {
	manager  manager.Manager
	down     chan struct{}
	mayWrite atomic.Pointer[WriteCheck] // permits writes to a namespace; nil permits all
}

var _ manager.Runnable = (*Fence)(nil)

// WriteCheck reports whether the work with the context may write to the namespace; the empty namespace stands for
// cluster-scoped objects.
type WriteCheck func(ctx context.Context, namespace string) bool

// These are the errors of requests that are not sent. Handlers see them, so they say why.
var (
	errFenced = errors.New("the manager does not wait for the operator any more, so nothing is written")
	errLapsed = errors.New(
		"the operator could not renew its peering record or its lease in time, and another process may act in its " +
			"place, so nothing is written",
	)
)

// detectionTimeout is the time within which the Fence detects that the manager does not wait, after the context of the
// operator has ended. The manager ends all contexts, but one after another.
const detectionTimeout = 100 * time.Millisecond

// NewFence creates the fence of an operator. It must be added to the manager to have an effect.
func NewFence(m manager.Manager) *Fence { return &Fence{manager: m, down: make(chan struct{})} }

// Start blocks until the context ends, and then takes the fence down.
func (f *Fence) Start(ctx context.Context) error {
	<-ctx.Done()
	close(f.down)
	return nil
}

// GetCache makes the manager treat the fence as one of its caches. The fence counts as synced when the manager's own
// cache is.
func (f *Fence) GetCache() cache.Cache { return f.manager.GetCache() }

// ManagerWaits reports whether the manager waits for the end of the operator. Call it when the context of the operator
// has ended.
func (f *Fence) ManagerWaits() bool {
	timer := time.NewTimer(detectionTimeout)
	defer timer.Stop()
	select {
	case <-f.down:
		return false
	case <-timer.C:
		return true
	}
}

// Down returns a channel that is closed when the manager does not wait any more.
func (f *Fence) Down() <-chan struct{} { return f.down }

// LimitWrites refuses writes whenever the check returns false for them, even while the fence stands. The check can be
// set at any time.
func (f *Fence) LimitWrites(mayWrite WriteCheck) { f.mayWrite.Store(&mayWrite) }

// WrapRoundTrip wraps next. The wrapped function refuses all requests when the fence is down, and writes without
// permission.
func (f *Fence) WrapRoundTrip(next RoundTripFunc) RoundTripFunc {
	return func(request *http.Request) (*http.Response, error) {
		write := request.Method != http.MethodGet && request.Method != http.MethodHead
		if err := f.refusalFor(request.Context(), write, namespaceIn(request.URL.Path)); err != nil {
			// A RoundTripper must close the body of the request, also on errors.
			if request.Body != nil {
				_ = request.Body.Close()
			}
			return nil, err
		}
		return next(request)
	}
}

// namespaceIn returns the namespace of the object in a request path; empty for a cluster-scoped object.
func namespaceIn(path string) string {
	_, below, _ := strings.Cut(path, "/namespaces/")
	namespace, _, inside := strings.Cut(below, "/")
	if !inside {
		return "" // the path ends with the name, so it is of the Namespace itself
	}
	return namespace
}

// refusalFor returns the error of a request that must not be sent, or nil.
func (f *Fence) refusalFor(ctx context.Context, write bool, namespace string) error {
	select {
	case <-f.down:
		return errFenced
	default:
	}
	if mayWrite := f.mayWrite.Load(); write && mayWrite != nil && !(*mayWrite)(ctx, namespace) {
		return errLapsed
	}
	return nil
}
