package admission

import (
	"context"
	"sync"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

const (
	// scanInterval is the time between two scans if no CRD changes. It is needed because aggregated API servers do not
	// announce changes.
	scanInterval = 5 * time.Minute
	// rescansAfterChange is the number of additional scans after a change of CRDs, because discovery lags behind.
	rescansAfterChange = 3
)

// scanRequests signals that another scan is needed.
type scanRequests chan struct{}

// RequestResync requests a scan. It never blocks, because one pending request is sufficient.
func (r scanRequests) RequestResync() {
	select {
	case r <- struct{}{}:
	default:
	}
}

// followResources scans the resources, and updates the served handlers and the webhook entries when the resources
// change. It scans again after a change of a CRD, after an error, and after scanInterval.
func (a *WebhookServer) followResources(ctx context.Context) error {
	// The watch of CRDs ends with the context. Wait for it before returning.
	changed := make(scanRequests, 1)
	var watching sync.WaitGroup
	defer watching.Wait()
	if a.crds != nil {
		watching.Go(func() { a.crds.Run(ctx, changed.RequestResync) })
	}
	var known *resources
	// said is the last logged error, because a repeated error is logged only once. unsettled is the number of
	// additional scans that are left.
	said, unsettled, pause := "", 0, configurations.RetryBackoff()
	for ctx.Err() == nil {
		found, err := a.scanResources(ctx, known)
		next := scanInterval
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			next = pause.Step()
			if said != err.Error() {
				said = err.Error()
				logf.FromContext(ctx).Error(err, "Cannot find all resources that webhooks are for; retrying")
			}
		case unsettled > 0:
			unsettled--
			next = pause.Step()
		default:
			// A scan without an error resets the delays.
			said, pause = "", configurations.RetryBackoff()
		}
		// An incomplete scan is still useful: it contains the known resources of the groups that failed.
		if found != nil && (known == nil || !found.isEquivalent(*known)) {
			a.updateServedHandlers(*found)
			known = found
		}
		// Reviews wait for a complete scan, because requests for unknown resources are rejected.
		if known != nil && err == nil {
			a.scannedOnce.Do(func() { close(a.scanned) })
		}
		// A nil channel blocks forever: with ScanOnce, only an error leads to another scan.
		var again <-chan time.Time
		if !a.options.ScanOnce || err != nil {
			again = time.After(next)
		}
		select {
		case <-ctx.Done():
		case <-again:
		case <-changed:
			pause, unsettled = configurations.RetryBackoff(), rescansAfterChange
		}
	}
	return nil
}

// updateServedHandlers updates the served handlers, and then the entries. The order matters: entries must not lead to
// handlers that are not served yet.
func (a *WebhookServer) updateServedHandlers(known resources) {
	served := []review.ServedResource{}
	for _, resource := range known.reviewedResources {
		one := review.ServedResource{Resource: resource}
		for i, r := range a.options.Registrations {
			if known.isReviewedBy(r, resource) {
				one.Handlers = append(one.Handlers, a.handlers[i])
				// If the kind is known in advance, the counters of failures start at zero, so that an alert sees the
				// first increase.
				if r.Selector.IsSpecific() {
					a.handlers[i].ExpectFailures(resource.GroupKind())
				}
			}
		}
		served = append(served, one)
	}
	a.servedResources.Store(&served)
	a.announceHooks(&known)
}

// announceHooks passes the hooks to the writer. A nil argument repeats this for the resources of the last call, because
// a startup handler may have changed the namespaces of the operator.
func (a *WebhookServer) announceHooks(now *resources) {
	// Hold the lock until the hooks are passed on, so that older hooks never replace newer ones.
	a.hooksMu.Lock()
	defer a.hooksMu.Unlock()
	if now != nil {
		a.scannedResources = *now
	}
	hooks := a.options.configurationHooks(a.scannedResources)
	if a.writer != nil {
		a.writer.SetHooks(hooks)
	}
	// Announce is only called when reviews can be answered.
	if a.options.Announce == nil || !a.isOpen() {
		return
	}
	// The host of the URL is arbitrary: only the paths are used.
	objects, err := configurations.ConfigurationObjects(
		a.options.Operator, hooks, tunnels.ByURL("https://announced"+a.options.Path, nil), a.options.entryForm(),
	)
	if err != nil {
		a.options.Log.Error(err, "Cannot make the webhook configurations")
	}
	a.options.Announce(objects)
}

// isOpen reports whether reviews are answered.
func (a *WebhookServer) isOpen() bool {
	select {
	case <-a.reviewsReady:
		return true
	default:
		return false
	}
}

// openWhenReady allows reviews as soon as the resources are known and the operator is ready.
func (a *WebhookServer) openWhenReady(ctx context.Context) error {
	for _, condition := range []<-chan struct{}{a.scanned, a.options.HandlersReady} {
		if condition == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-condition:
		}
	}
	close(a.reviewsReady)
	// A startup handler may have changed the namespaces.
	a.announceHooks(nil)
	return nil
}
