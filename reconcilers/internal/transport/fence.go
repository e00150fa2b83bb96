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

// Fence tells when the manager does not wait for the operator any more: because the lease of the leader is lost, or
// because its time for the exit is over. From then on, the operator must not do anything: another process may lead, and
// this one is about to be gone. A manager ends its caches when all that needs a leader has ended, or when it does not
// wait for that. So the fence passes for a cache: it stands until it is told to end.
type Fence struct {
	manager  manager.Manager
	down     chan struct{}
	mayWrite atomic.Pointer[func(namespace string) bool] // nil is always
}

var _ manager.Runnable = (*Fence)(nil)

// These are the errors of requests that are not sent.
var (
	errFenced = errors.New("the manager does not wait for the operator any more, so nothing is written")
	errLapsed = errors.New(
		"the operator could not renew its peering record or its lease in time, and another process may act in its " +
			"place, so nothing is written",
	)
)

// moment is how long after the end of its own context the operator learns that the manager does not wait: it ends all
// contexts one after another.
const moment = 100 * time.Millisecond

// NewFence makes the fence of an operator. Add it to the manager.
func NewFence(m manager.Manager) *Fence { return &Fence{manager: m, down: make(chan struct{})} }

// Start stands until the context ends.
func (f *Fence) Start(ctx context.Context) error {
	<-ctx.Done()
	close(f.down)
	return nil
}

// GetCache makes it one of the caches of the manager, and is ready when the manager's own is.
func (f *Fence) GetCache() cache.Cache { return f.manager.GetCache() }

// Holds tells, when the operator has ended, whether the manager has waited for that.
func (f *Fence) Holds() bool {
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case <-f.down:
		return false
	case <-timer.C:
		return true
	}
}

// Down is closed when the manager does not wait any more.
func (f *Fence) Down() <-chan struct{} { return f.down }

// Limit has writes refused whenever it is false for the namespace that they are for, even though the fence stands. The
// empty namespace is what is outside of all.
func (f *Fence) Limit(mayWrite func(namespace string) bool) { f.mayWrite.Store(&mayWrite) }

// Around refuses requests when the fence is down, and writes while there is no permission.
func (f *Fence) Around(next RoundTripFunc) RoundTripFunc {
	return func(request *http.Request) (*http.Response, error) {
		write := request.Method != http.MethodGet && request.Method != http.MethodHead
		if err := f.refusal(write, namespaceIn(request.URL.Path)); err != nil {
			if request.Body != nil {
				_ = request.Body.Close()
			}
			return nil, err
		}
		return next(request)
	}
}

// namespaceIn is that of the object that a path leads to; empty if it is outside of any.
func namespaceIn(path string) string {
	_, below, _ := strings.Cut(path, "/namespaces/")
	namespace, _, inside := strings.Cut(below, "/")
	if !inside {
		return "" // it is the namespace itself
	}
	return namespace
}

// refusal is why a request is not sent; nil if it is.
func (f *Fence) refusal(write bool, namespace string) error {
	select {
	case <-f.down:
		return errFenced
	default:
	}
	if mayWrite := f.mayWrite.Load(); write && mayWrite != nil && !(*mayWrite)(namespace) {
		return errLapsed
	}
	return nil
}
