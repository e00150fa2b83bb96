package controller

import (
	"context"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kopf-runtime/kopf-runtime/internal/transport"
)

// reachability tracks whether the objects of one scope can be listed and watched, so that each failure is logged once.
type reachability struct {
	logRecovery func() // logs that listing and watching work again

	mu sync.Mutex
	// the reason that was logged last, and the informer's resource version at that time
	lastLoggedReason, lastLoggedVersion string
}

// noteFailure reports whether the reason is new: it was not logged since the scope could be listed or watched. A
// changed version means that the informer made progress since.
func (r *reachability) noteFailure(err error, version string) (isNew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err.Error() == r.lastLoggedReason && version == r.lastLoggedVersion {
		return false
	}
	r.lastLoggedReason, r.lastLoggedVersion = err.Error(), version
	return true
}

// noteRecovery records a successful list or watch. It logs the recovery if a failure was logged before.
func (r *reachability) noteRecovery() {
	r.mu.Lock()
	failed := r.lastLoggedReason != ""
	r.lastLoggedReason, r.lastLoggedVersion = "", ""
	r.mu.Unlock()
	if failed {
		r.logRecovery()
	}
}

// trackReachability wraps the requests of the scope's informer, and reports outages and their ends.
func (c *Controller) trackReachability(next transport.RoundTripFunc) transport.RoundTripFunc {
	return func(request *http.Request) (*http.Response, error) {
		response, err := next(request)
		switch {
		case err == nil:
			c.deps.Outage.noteReachable(c.deps.Log)
		case isUnreachable(err) && request.Context().Err() == nil:
			// Outages are noticed here, because the reflector retries watches without reporting such errors.
			c.deps.Outage.noteUnreachable(c.deps.Log, err)
		}
		// Only an accepted request shows that the resource can be listed; an error status shows that the server
		// answers.
		if err == nil && response.StatusCode == http.StatusOK {
			c.reachability.noteRecovery()
		}
		return response, err
	}
}

// watchErrorHandler returns the error handler of the informer. It logs each reason once, and again if the kind could be
// listed in between. The informer keeps retrying. A kind that was not found triggers a new discovery, which decides
// whether the kind still exists.
func (c *Controller) watchErrorHandler() toolscache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, r *toolscache.Reflector, err error) {
		// Handlers of other kinds must not wait for the indices of this one.
		c.giveUpIndices(err)
		c.health.ReportFailure(err)
		switch {
		case ctx.Err() != nil:
			return
		case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			return // normal: the informer was too slow, and lists again
		case isUnreachable(err):
			return // logged as an outage
		case apierrors.IsNotFound(err):
			c.deps.RequestResync()
		}
		if c.reachability.noteFailure(err, r.LastSyncResourceVersion()) {
			c.log.Error(err, "Cannot list or watch a resource; its handlers wait. Check the permissions and the CRD",
				"handlers", c.handlerIDs())
		}
	}
}
