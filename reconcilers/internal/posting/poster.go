package posting

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

// backlog limits the number of waiting events. Further events are dropped and logged, so that a handler never waits.
const backlog = 1000

// drainTimeout limits the time that the exit of the operator spends on waiting events.
const drainTimeout = 2 * time.Second

// EventClient is the part of a client that posts events.
type EventClient interface {
	Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error
	Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error
}

// Options configure how events are posted. The zero value equals Kopf's defaults, except that it has no component.
type Options struct {
	// Component is the source of the events.
	Component string
	// Instance is the instance of the source; empty means [DefaultInstance].
	Instance string
	// NamePrefix starts the names of the events; empty means [DefaultNamePrefix].
	NamePrefix string
	// Level is the lowest level of log lines, and of events that have a level, that are posted.
	Level slog.Level
	// Loggers enables posting the log lines of handlers, by a [LinePoster].
	Loggers bool
	// Plain posts each event by itself: identical events are not counted in one, and there are no limits.
	Plain bool
	// PerSecond is the average number of requests per second; 0 means [DefaultPerSecond].
	PerSecond float32
	// DefaultNamespace returns the namespace of events about cluster-scoped objects. It is called for each event when
	// it is posted. Nil, or an empty result, means "default".
	DefaultNamespace func() string
	// Count is called with the outcome of each event; it may be nil.
	Count func(EventOutcome)
}

// QueuePoster posts events in the background. It is a Runnable of a manager. Events wait in its queue until Start runs.
type QueuePoster struct {
	options Options
	client  EventClient
	limits  *limits // nil with Options.Plain
	queue   chan *post
}

// post is one waiting event.
type post struct {
	event *corev1.Event
	// namespace is that of the object. It can differ from that of the event if the object is cluster-scoped.
	namespace string
	// observed is the correlator's result, once the event has been counted.
	observed *record.EventCorrelateResult
}

// New creates a poster. It posts nothing before Start.
func New(client EventClient, o Options) *QueuePoster {
	o.Instance, o.NamePrefix = cmp.Or(o.Instance, DefaultInstance), cmp.Or(o.NamePrefix, DefaultNamePrefix)
	p := &QueuePoster{options: o, client: client, queue: make(chan *post, backlog)}
	if !o.Plain {
		p.limits = newLimits(cmp.Or(o.PerSecond, DefaultPerSecond))
	}
	return p
}

// Takes reports whether events of this level are posted.
func (p *QueuePoster) Takes(level slog.Level) bool { return level >= p.options.Level }

// Post queues an event about the object, without waiting. The type is Normal, Warning, or any other text. Events about
// events are ignored. If the queue is full, the event is dropped and logged.
func (p *QueuePoster) Post(ctx context.Context, body map[string]any, eventType, reason, message string) {
	about := &unstructured.Unstructured{Object: body}
	event := p.options.newEvent(about, eventType, reason, message)
	if event == nil {
		return
	}
	select {
	case p.queue <- &post{event: event, namespace: about.GetNamespace()}:
	default:
		p.countOutcome(Dropped)
		// The log line itself must not be posted, as it would be dropped and logged again.
		logging.Warn(withoutPosting(logf.FromContext(ctx)), "Dropped a Kubernetes event: too many wait to be posted",
			"event", reason, "note", message)
	}
}

// Silent is a poster that posts nothing.
type Silent struct{}

// Post ignores the event.
func (Silent) Post(context.Context, map[string]any, string, string, string) {}

// Takes returns false.
func (Silent) Takes(slog.Level) bool { return false }

// Start posts events one by one until the context ends, then drains the queue.
func (p *QueuePoster) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			p.drainQueue(ctx)
			return nil
		case next := <-p.queue:
			about := next.withObjectLogger(ctx)
			err := p.sendEvent(about, next)
			// The request failed because the operator exits: post this event again, with the time for draining.
			if err != nil && ctx.Err() != nil {
				p.drainQueue(ctx, next)
				return nil
			}
			p.logFailure(about, next, err)
		}
	}
}

// drainQueue posts the waiting events when the operator exits, because the last event of a handler often says why it
// failed. An event whose request was interrupted comes first.
func (p *QueuePoster) drainQueue(ctx context.Context, interrupted ...*post) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	for ctx.Err() == nil {
		var next *post
		if len(interrupted) > 0 {
			next, interrupted = interrupted[0], nil
		} else {
			select {
			case next = <-p.queue:
			default:
				return
			}
		}
		about := next.withObjectLogger(ctx)
		err := p.sendEvent(about, next)
		p.logFailure(about, next, err)
		// The rate limit leaves no time for another request before the deadline.
		if errors.Is(err, errLimited) {
			break
		}
	}
	if left := len(p.queue); left > 0 {
		for range left {
			p.countOutcome(Dropped)
		}
		logging.Warn(logf.FromContext(ctx), "Dropped Kubernetes events: operator exits before they are posted",
			"count", left)
	}
}

// sendEvent posts one event. An event about a cluster-scoped object gets a namespace, also in its reference, because
// the API server requires both to be equal.
func (p *QueuePoster) sendEvent(ctx context.Context, next *post) error {
	event := next.event
	if event.Namespace == "" {
		event.Namespace = metav1.NamespaceDefault
		if p.options.DefaultNamespace != nil {
			event.Namespace = cmp.Or(p.options.DefaultNamespace(), metav1.NamespaceDefault)
		}
		event.InvolvedObject.Namespace = event.Namespace
	}
	if p.limits != nil {
		return p.sendLimited(ctx, next)
	}
	err := p.client.Create(ctx, event)
	if err == nil {
		p.countOutcome(Posted)
	}
	return err
}

// withObjectLogger returns a context whose logger names the object, for all log lines of the request.
func (p *post) withObjectLogger(ctx context.Context) context.Context {
	o := p.event.InvolvedObject
	log := logging.OfKind(logf.FromContext(ctx), o.GroupVersionKind())
	log = logging.OfObject(log, types.NamespacedName{Namespace: p.namespace, Name: o.Name}, o.UID)
	return logf.IntoContext(ctx, log)
}

// logFailure counts and logs an event that could not be posted.
func (p *QueuePoster) logFailure(ctx context.Context, next *post, err error) {
	if err != nil {
		p.countOutcome(Failed)
		logging.Warn(logf.FromContext(ctx), "Failed to post a Kubernetes event; dropping it",
			"event", next.event.Reason, "note", next.event.Message, "error", err.Error())
	}
}

// countOutcome reports the outcome of one event.
func (p *QueuePoster) countOutcome(what EventOutcome) {
	if p.options.Count != nil {
		p.options.Count(what)
	}
}

// These values are in all events of Kopf by default. Users may select events by them, so they must not change.
const (
	DefaultNamePrefix = "kopf-event-"
	DefaultInstance   = "dev"
	action            = "Action?"
)

// newEvent builds the event to post. It returns nil for an event about an event, which could otherwise cause an endless
// chain.
func (o *Options) newEvent(about *unstructured.Unstructured, eventType, reason, message string) *corev1.Event {
	if about.GetAPIVersion() == "v1" && about.GetKind() == "Event" {
		return nil
	}
	now := time.Now()
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: about.GetNamespace(), GenerateName: o.NamePrefix},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: about.GetAPIVersion(), Kind: about.GetKind(), Namespace: about.GetNamespace(),
			Name: about.GetName(), UID: about.GetUID(),
		},
		Type: eventType, Reason: reason, Message: shortenMessage(message), Action: action,
		FirstTimestamp: metav1.NewTime(now), LastTimestamp: metav1.NewTime(now), EventTime: metav1.NewMicroTime(now),
		Source:              corev1.EventSource{Component: o.Component},
		ReportingController: o.Component, ReportingInstance: o.Instance,
	}
}

// shortenMessage removes the middle of a message that exceeds the API's limit of 1024 characters. The beginning says
// what happened, and the end often says why. The lengths are the same as in Kopf, in code points.
func shortenMessage(message string) string {
	const limit, head, tail = 1024, 511, 510
	runes := []rune(message)
	if len(runes) <= limit {
		return message
	}
	return string(runes[:head]) + "..." + string(runes[len(runes)-tail:])
}
