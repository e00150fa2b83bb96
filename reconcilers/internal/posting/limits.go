package posting

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

// The default limits. A handler that is retried once a minute stays below them.
const (
	// DefaultPerSecond is the average number of requests per second, for all objects together.
	DefaultPerSecond = 10
	// burst is the number of requests that may exceed the average at once.
	burst = 100
	// perObject is the number of events of one type about one object that may be posted at once, and refill the number
	// added per second: one per minute.
	perObject, refill = 25, 1.0 / 60
)

// EventOutcome says how an event was handled, for metrics.
type EventOutcome string

const (
	// Posted means that a new event was created.
	Posted EventOutcome = "posted"
	// Counted means that an identical event exists, and that its count was increased.
	Counted EventOutcome = "counted"
	// Limited means that there were too many events about the object. The next identical event includes it in its
	// count.
	Limited EventOutcome = "limited"
	// Dropped means that too many events waited, or that the operator exited first.
	Dropped EventOutcome = "dropped"
	// Failed means that the API server rejected the event.
	Failed EventOutcome = "failed"
)

var errLimited = errors.New("too many events in all for the time that is left")

// limits protects the cluster from a handler that posts too many events. Identical events of an object are counted in
// one event, different ones are never merged, and the rates per object and in total are limited.
type limits struct {
	correlator *record.EventCorrelator
	limiter    flowcontrol.RateLimiter
	patches    bool // false once the API server has forbidden patches
}

// newLimits uses client-go's correlator for counting and for the limit per object, but with a key that switches off its
// aggregation.
func newLimits(perSecond float32) *limits {
	return &limits{
		correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{
			KeyFunc: messageGroup, MaxEvents: math.MaxInt32, BurstSize: perObject, QPS: refill,
		}),
		limiter: flowcontrol.NewTokenBucketRateLimiter(perSecond, burst),
		patches: true,
	}
}

// messageGroup returns a group for each message, so that the correlator never aggregates different messages.
func messageGroup(event *corev1.Event) (group, member string) {
	about := event.InvolvedObject
	parts := []string{string(about.UID), about.Namespace, about.Name, event.Reason, event.Message}
	return strings.Join(parts, "\x00"), ""
}

// sendLimited posts the event or increases the count of an identical one, within the limits.
func (p *QueuePoster) sendLimited(ctx context.Context, next *post) error {
	// Correlate only once: a repeated attempt must not count the event twice.
	if next.observed == nil {
		next.event.Count = 1
		observed, err := p.limits.correlator.EventCorrelate(next.event)
		if err != nil {
			return fmt.Errorf("counting the event: %w", err)
		}
		next.observed = observed
	}
	if next.observed.Skip {
		p.countOutcome(Limited)
		logf.FromContext(ctx).V(1).Info("Not posting a Kubernetes event: there were many about the object",
			"event", next.event.Reason, "note", next.event.Message)
		return nil
	}
	// The wait fails at once if it would exceed the deadline of the context.
	if err := p.limits.limiter.Wait(ctx); err != nil {
		return fmt.Errorf("%w: %w", errLimited, err)
	}
	event := next.observed.Event
	outcome, err := p.createOrPatch(ctx, event, next.observed.Patch)
	if err != nil {
		return err
	}
	// The correlator needs the name and version of the created event to patch it later.
	p.limits.correlator.UpdateState(event)
	p.countOutcome(outcome)
	return nil
}

// createOrPatch increases the count of the known event by a patch, or creates a new event. It also creates one if the
// known event has expired, or if patching is not permitted.
func (p *QueuePoster) createOrPatch(ctx context.Context, event *corev1.Event, patch []byte) (EventOutcome, error) {
	if event.Name != "" && p.limits.patches {
		err := p.client.Patch(ctx, event, client.RawPatch(types.MergePatchType, patch))
		switch {
		case err == nil:
			return Counted, nil
		case apierrors.IsForbidden(err):
			// Do not try again for each event: log the missing permission once, and create events from now on.
			p.limits.patches = false
			logging.Warn(logf.FromContext(ctx), "Posting each Kubernetes event by itself, as they may not be patched: "+
				"allow the verb patch for events", "error", err.Error())
		case !apierrors.IsNotFound(err):
			return "", err
		}
	}
	// Create needs an event without the identity of the former one.
	event.Name, event.ResourceVersion = "", ""
	return Posted, p.client.Create(ctx, event)
}
