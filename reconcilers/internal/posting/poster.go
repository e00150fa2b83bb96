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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

// backlog is how many events may wait. Poster drops and logs further ones, so that a handler never waits.
const backlog = 1000

// drainTimeout limits how long the exit of the operator takes to post the events that still wait.
const drainTimeout = 2 * time.Second

// Client is the part of a client that posts events.
type Client interface {
	Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error
	Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error
}

// Options are how events are posted. The zero value is Kopf's, but that there is no component.
type Options struct {
	// Component is the source of the events.
	Component string
	// Instance is the instance of the source; empty is [DefaultInstance].
	Instance string
	// NamePrefix begins the names of the events; empty is [DefaultNamePrefix].
	NamePrefix string
	// Level is that of events which have one, and of log lines: those below it are not posted.
	Level slog.Level
	// Loggers has the log lines of handlers posted, too, by a [LinePoster].
	Loggers bool
	// Plain posts each event by itself: identical ones are not counted in one, and there are no limits.
	Plain bool
	// PerSecond is how many requests there are in the long run; 0 is [DefaultPerSecond].
	PerSecond float32
	// DefaultNamespace is where events about objects without a namespace go, asked for each when it is posted. Nil, or
	// an empty answer, is "default".
	DefaultNamespace func() string
	// Count is called for each event with what came of it; nil is not.
	Count func(Outcome)
}

// Poster posts events in the background. It is a Runnable of a manager; events wait until Start runs.
type Poster struct {
	options Options
	client  Client
	limits  *limits // nil if there are none
	queue   chan *post
}

// post is an event that waits.
type post struct {
	event *corev1.Event
	// namespace is the object's: the event of an object without one is in another.
	namespace string
	// observed is set once the event has been counted.
	observed *record.EventCorrelateResult
}

// New makes a poster.
func New(client Client, o Options) *Poster {
	o.Instance, o.NamePrefix = cmp.Or(o.Instance, DefaultInstance), cmp.Or(o.NamePrefix, DefaultNamePrefix)
	p := &Poster{options: o, client: client, queue: make(chan *post, backlog)}
	if !o.Plain {
		p.limits = newLimits(cmp.Or(o.PerSecond, DefaultPerSecond))
	}
	return p
}

// Takes tells whether events of the level are posted.
func (p *Poster) Takes(level slog.Level) bool { return level >= p.options.Level }

// Post queues an event about the object. The type is Normal, Warning, or any other text. Post drops events about
// events.
func (p *Poster) Post(ctx context.Context, body map[string]any, eventType, reason, message string) {
	about := &unstructured.Unstructured{Object: body}
	event := p.options.event(about, eventType, reason, message)
	if event == nil {
		return
	}
	select {
	case p.queue <- &post{event: event, namespace: about.GetNamespace()}:
	default:
		p.count(Dropped)
		logging.Warn(unposted(logf.FromContext(ctx)), "Dropped a Kubernetes event: too many wait to be posted",
			"event", reason, "note", message)
	}
}

// Silent posts nothing.
type Silent struct{}

// Post drops the event, as it is meant to.
func (Silent) Post(context.Context, map[string]any, string, string, string) {}

// Takes is false.
func (Silent) Takes(slog.Level) bool { return false }

// Start posts events until the context ends, and then drains the queue.
func (p *Poster) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			p.drain(ctx)
			return nil
		case next := <-p.queue:
			about := next.about(ctx)
			err := p.send(about, next)
			if err != nil && ctx.Err() != nil {
				p.drain(ctx, next)
				return nil
			}
			p.conclude(about, next, err)
		}
	}
}

// drain posts the waiting events when the operator exits, as the last event of a handler often says why it failed. The
// event whose request was interrupted comes first.
func (p *Poster) drain(ctx context.Context, interrupted ...*post) {
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
		about := next.about(ctx)
		err := p.send(about, next)
		p.conclude(about, next, err)
		if errors.Is(err, errLimited) {
			break
		}
	}
	if left := len(p.queue); left > 0 {
		for range left {
			p.count(Dropped)
		}
		logging.Warn(logf.FromContext(ctx), "Dropped Kubernetes events: operator exits before they are posted",
			"count", left)
	}
}

// send posts one event. Those about objects without a namespace get one, and say it of these, too.
func (p *Poster) send(ctx context.Context, next *post) error {
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
		p.count(Posted)
	}
	return err
}

// about has the object in all lines, also in those about the request.
func (p *post) about(ctx context.Context) context.Context {
	o := p.event.InvolvedObject
	log := logging.OfKind(logf.FromContext(ctx), o.GroupVersionKind())
	log = logging.OfObject(log, types.NamespacedName{Namespace: p.namespace, Name: o.Name}, o.UID)
	return logf.IntoContext(ctx, log)
}

// conclude tells of an event that is lost.
func (p *Poster) conclude(ctx context.Context, next *post, err error) {
	if err != nil {
		p.count(Failed)
		logging.Warn(logf.FromContext(ctx), "Failed to post a Kubernetes event; dropping it",
			"event", next.event.Reason, "note", next.event.Message, "error", err.Error())
	}
}

func (p *Poster) count(what Outcome) {
	if p.options.Count != nil {
		p.options.Count(what)
	}
}
