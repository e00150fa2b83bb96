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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

// The limits, unless there are none. A handler that is retried each minute stays below them.
const (
	// DefaultPerSecond is how many requests there are for all objects in the long run.
	DefaultPerSecond = 10
	// burst is how many more there may be at once.
	burst = 100
	// perObject is how many events of one type there may be at once about one object, and refill how many more in each
	// second.
	perObject, refill = 25, 1.0 / 60
)

// Outcome is what came of an event.
type Outcome string

const (
	// Posted is that there is a new event.
	Posted Outcome = "posted"
	// Counted is that there is an identical event, which has counted this one.
	Counted Outcome = "counted"
	// Limited is that there were too many events about the object. The next one that is identical counts this one, too.
	Limited Outcome = "limited"
	// Dropped is that there were too many events in all, or the operator has exited before.
	Dropped Outcome = "dropped"
	// Failed is that the API server has refused it.
	Failed Outcome = "failed"
)

var errLimited = errors.New("too many events in all for the time that is left")

// limits keep a handler that goes wrong from flooding the cluster: identical events of an object are counted in one,
// different ones are never folded, and there are only so many for an object and in all.
type limits struct {
	correlator *record.EventCorrelator
	all        flowcontrol.RateLimiter
	patches    bool // are allowed
}

func newLimits(perSecond float32) *limits {
	return &limits{
		correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{
			KeyFunc: whole, MaxEvents: math.MaxInt32, BurstSize: perObject, QPS: refill,
		}),
		all:     flowcontrol.NewTokenBucketRateLimiter(perSecond, burst),
		patches: true,
	}
}

// whole makes each message a group of its own, so that different ones are never aggregated.
func whole(event *corev1.Event) (group, member string) {
	about := event.InvolvedObject
	parts := []string{string(about.UID), about.Namespace, about.Name, event.Reason, event.Message}
	return strings.Join(parts, "\x00"), ""
}

// sendLimited posts the event, or counts it in the one that is there.
func (p *Poster) sendLimited(ctx context.Context, next *post) error {
	if next.observed == nil {
		next.event.Count = 1
		observed, err := p.limits.correlator.EventCorrelate(next.event)
		if err != nil {
			return fmt.Errorf("counting the event: %w", err)
		}
		next.observed = observed
	}
	if next.observed.Skip {
		p.count(Limited)
		logf.FromContext(ctx).V(1).Info("Not posting a Kubernetes event: there were many about the object",
			"event", next.event.Reason, "note", next.event.Message)
		return nil
	}
	if err := p.limits.all.Wait(ctx); err != nil {
		return fmt.Errorf("%w: %w", errLimited, err)
	}
	event := next.observed.Event
	outcome, err := p.write(ctx, event, next.observed.Patch)
	if err != nil {
		return err
	}
	p.limits.correlator.UpdateState(event)
	p.count(outcome)
	return nil
}

// write counts the event in the one that is known by its name, or creates it: also where the known one is gone, or
// where events may be created only.
func (p *Poster) write(ctx context.Context, event *corev1.Event, patch []byte) (Outcome, error) {
	if event.Name != "" && p.limits.patches {
		err := p.client.Patch(ctx, event, client.RawPatch(types.MergePatchType, patch))
		switch {
		case err == nil:
			return Counted, nil
		case apierrors.IsForbidden(err):
			p.limits.patches = false
			logging.Warn(logf.FromContext(ctx), "Posting each Kubernetes event by itself, as they may not be patched: "+
				"allow the verb patch for events", "error", err.Error())
		case !apierrors.IsNotFound(err):
			return "", err
		}
	}
	event.Name, event.ResourceVersion = "", ""
	return Posted, p.client.Create(ctx, event)
}
