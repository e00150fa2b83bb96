package controller

import (
	"context"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/transport"
)

// reach is whether the objects of one scope can be listed and watched, as far as the log knows.
type reach struct {
	again func() // logs that they can

	mu         sync.Mutex
	last, seen string // the reason that was logged, and the version at that time
}

// fail reports whether the reason is new: it was not logged since the scope could be listed or watched.
func (r *reach) fail(err error, version string) (isNew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err.Error() == r.last && version == r.seen {
		return false
	}
	r.last, r.seen = err.Error(), version
	return true
}

// recover is called with each list and watch that is granted.
func (r *reach) recover() {
	r.mu.Lock()
	failed := r.last != ""
	r.last, r.seen = "", ""
	r.mu.Unlock()
	if failed {
		r.again()
	}
}

// reaching reports outages and their ends, by the requests of the informer of the scope.
func (c *Controller) reaching(next transport.RoundTripFunc) transport.RoundTripFunc {
	return func(request *http.Request) (*http.Response, error) {
		response, err := next(request)
		switch {
		case err == nil:
			c.deps.Outage.end(c.deps.Log)
		case isUnreachable(err) && request.Context().Err() == nil:
			c.deps.Outage.begin(c.deps.Log, err) // here, as the reflector retries watches without a report
		}
		if err == nil && response.StatusCode == http.StatusOK {
			c.reach.recover()
		}
		return response, err
	}
}

// watchFailed reports once for each reason that the kind cannot be listed or watched, and again if it could be
// meanwhile. The informer goes on trying. Whether the kind is still there is for the API server's lists to say.
func (c *Controller) watchFailed() toolscache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, r *toolscache.Reflector, err error) {
		c.giveUpIndices(err)
		c.health.Failed(err)
		switch {
		case ctx.Err() != nil:
			return
		case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			return // the informer was too slow, and lists all again: this happens to everybody
		case isUnreachable(err):
			return // logged as an outage
		case apierrors.IsNotFound(err):
			c.deps.Resync.RequestResync()
		}
		if c.reach.fail(err, r.LastSyncResourceVersion()) {
			c.log.Error(err, "Cannot list or watch a resource; its handlers wait. Check the permissions and the CRD",
				"handlers", c.handlerIDs())
		}
	}
}
