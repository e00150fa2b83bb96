package orchestration

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/controller"
)

// controllers represents the running or ended controllers of one resource.
type controllers struct {
	assignment Assignment
	stop       context.CancelCauseFunc
	// done is closed when all of them have ended.
	done    chan struct{}
	stopped bool // stop was called
}

// haveStarted reports whether the controllers exist; it is false for the zero value.
func (c controllers) haveStarted() bool { return c.stop != nil }

// haveEnded reports whether the controllers have ended. If nothing stopped them, the Runner refused the resource, and
// the next resync tries again.
func (c controllers) haveEnded() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// serveAssignment reports whether the controllers run for the assignment and keep running. Additional parents require a
// new list, because the cache may only have the identities of their children.
func (c controllers) serveAssignment(a Assignment) bool {
	return c.haveStarted() && !c.stopped && !c.haveEnded() && slices.Equal(c.assignment.Handlers, a.Handlers) &&
		!slices.ContainsFunc(a.Parents, func(parent schema.GroupKind) bool {
			return !slices.Contains(c.assignment.Parents, parent)
		})
}

// adjustControllers stops the controllers of resources that changed or disappeared, and starts those of new
// assignments.
func (o *Orchestrator) adjustControllers(ctx context.Context) {
	all := o.resolveAssignments()
	// A resource whose definition changed needs new controllers, even if its handlers are the same.
	unchanged := map[schema.GroupVersionResource]bool{}
	for _, a := range all {
		key := a.Resource.GroupVersionResource()
		running := o.controllers[key]
		unchanged[key] = running.haveStarted() && running.assignment.Resource.IsInterchangeable(a.Resource)
	}
	// Stop controllers first, but do not wait: new controllers wait for their predecessors. If the operator exits, the
	// end of the context stops them.
	for key, running := range o.controllers {
		// When the operator exits, nothing changed on the cluster, so nothing is logged here.
		if running.stopped || unchanged[key] || ctx.Err() != nil {
			continue
		}
		logf.FromContext(ctx).Info("Resource changed or disappeared; stopping its controllers",
			"kind", running.assignment.Resource.GroupVersionKind.String())
		running.stop(stopCauseFor(running.assignment.Resource, all))
		running.stopped = true
		o.controllers[key] = running
	}
	// The Runner must receive all assignments before any of them runs, because handlers wait for the indices of all
	// kinds.
	o.runner.AnnounceAssignments(ctx, all, o.unansweredSelectors())
	for _, a := range all {
		if !o.controllers[a.Resource.GroupVersionResource()].serveAssignment(a) {
			o.startControllers(ctx, a)
		}
	}
}

// stopCauseFor returns the cause with which controllers stop. It depends on whether another version of the resource
// takes over their objects.
func stopCauseFor(r discovery.Resource, all []Assignment) error {
	if slices.ContainsFunc(all, func(a Assignment) bool {
		return a.Resource.GroupResource() == r.GroupResource()
	}) {
		return controller.ErrRestarting
	}
	return controller.ErrRemoved
}

// startControllers runs the controllers of an assignment on a goroutine. If its objects had controllers before, these
// end first, because both would handle the same objects.
func (o *Orchestrator) startControllers(ctx context.Context, a Assignment) {
	predecessors := o.predecessorsOf(a.Resource)
	ctx, cancel := context.WithCancelCause(ctx)
	now := controllers{assignment: a, stop: cancel, done: make(chan struct{})}
	// Replace the entry at once, so that the next resync sees the new assignment.
	o.controllers[a.Resource.GroupVersionResource()] = now
	o.running.Go(func() {
		defer close(now.done)
		// Their objects are taken over, so their handlers end as for a restart.
		for _, other := range predecessors {
			other.stop(controller.ErrRestarting)
			<-other.done
		}
		o.runner.Run(ctx, a)
	})
}

// predecessorsOf returns the controllers that must end before those of the resource can start: its own, and stopping
// ones of other versions.
func (o *Orchestrator) predecessorsOf(r discovery.Resource) (all []controllers) {
	for key, other := range o.controllers {
		if key == r.GroupVersionResource() || other.stopped &&
			other.assignment.Resource.GroupResource() == r.GroupResource() {
			all = append(all, other)
		}
	}
	return all
}

// reportResolution logs why a resource of a selector is not served, once for each reason.
func (o *Orchestrator) reportResolution(
	ctx context.Context, selector discovery.Selector, found discovery.Resolution, err error,
) {
	// A resolution can be partial: it has resources, and a reason why others are missing.
	reason := found.Reason
	if err != nil {
		reason = err.Error()
	} else {
		// The resource exists again: a later absence gets a new grace period.
		delete(o.missingSince, selector)
	}
	switch {
	case ctx.Err() != nil || o.lastLoggedReasons[selector] == reason:
		return
	case !o.resolvesOnce && discovery.IsUnserved(err) && o.isRecentlyMissing(selector):
		o.reportRecentlyMissing(ctx, selector, err)
		return
	case err != nil && len(o.resolutions[selector].Served) > 0:
		return // the last resolution remains valid, so its resources are still served
	}
	// An empty reason is stored as well, so that the same problem is logged again after it was solved.
	o.lastLoggedReasons[selector] = reason
	log := logf.FromContext(ctx).WithValues("selector", selector.String(), "handlers", o.handlerIDsFor(selector))
	switch {
	case o.resolvesOnce && discovery.IsUnserved(err):
		log.Error(err, "Cannot find the resource of a selector, and scanning is disabled; its handlers are not called "+
			"until the operator is restarted")
	case discovery.IsUnserved(err):
		log.Error(err, "Cannot find the resource of a selector; its handlers wait for it. If it is a custom resource, "+
			"install its CRD")
	case err != nil:
		log.Error(err, "Cannot ask the API server for the resource of a selector; its handlers wait for the answer")
	case reason != "":
		logging.Warn(log, "Not serving some of the selected resources", "reason", reason)
	}
}

// missingGracePeriod is the time for which a resource may be missing without an error. The API server serves a CRD some
// seconds after it was applied, and the next resync then finds it.
const missingGracePeriod = 5 * time.Second

// isRecentlyMissing reports whether the resource has been missing for less than the grace period.
func (o *Orchestrator) isRecentlyMissing(selector discovery.Selector) bool {
	since, known := o.missingSince[selector]
	return !known || time.Since(since) < missingGracePeriod
}

// reportRecentlyMissing logs once, at the info level, that the resource is missing, and remembers since when.
func (o *Orchestrator) reportRecentlyMissing(ctx context.Context, selector discovery.Selector, err error) {
	if _, known := o.missingSince[selector]; known {
		return
	}
	// RequestResync is not needed: waiting selectors are resolved again with a backoff.
	o.missingSince[selector] = time.Now()
	logf.FromContext(ctx).Info("The resource of a selector is not served yet; its handlers wait for it",
		"selector", selector.String(), "handlers", o.handlerIDsFor(selector), "reason", err.Error())
}

// handlerIDsFor returns the ids of the handlers that are registered for the selector.
func (o *Orchestrator) handlerIDsFor(selector discovery.Selector) (ids []string) {
	for _, r := range o.registrations {
		if r.Selector == selector {
			ids = append(ids, r.Handler.Description.ID)
		}
	}
	return ids
}
