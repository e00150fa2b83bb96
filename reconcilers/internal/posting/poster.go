package posting

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

// backlog is how many events may wait. Poster drops and logs further ones, so that a handler never waits.
const backlog = 1000

// drainTimeout limits how long the exit of the operator takes to post the events that still wait.
const drainTimeout = 2 * time.Second

// These values are the same in all events of Kopf; users may select events by them.
const (
	namePrefix = "kopf-event-"
	action     = "Action?"
	instance   = "dev"
)

// Creator is the part of a client that posts events.
type Creator interface {
	Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error
}

// Poster posts events in the background. It is a Runnable of a manager; events wait until Start runs.
type Poster struct {
	// DefaultNamespace is where events about objects without a namespace go, asked for each when it is posted. Nil, or
	// an empty answer, is "default". It is set before Start.
	DefaultNamespace func() string

	client    Creator
	component string
	queue     chan *post
}

// post is an event that waits.
type post struct {
	event *corev1.Event
	// namespace is the object's: the event of an object without one is in another.
	namespace string
}

// New makes a poster, which names the component as the source of its events.
func New(client Creator, component string) *Poster {
	return &Poster{client: client, component: component, queue: make(chan *post, backlog)}
}

// Post queues an event about the object. The type is Normal, Warning, or any other text. Post drops events about
// events.
func (p *Poster) Post(ctx context.Context, body map[string]any, eventType, reason, message string) {
	about := &unstructured.Unstructured{Object: body}
	event := p.event(about, eventType, reason, message)
	if event == nil {
		return
	}
	select {
	case p.queue <- &post{event, about.GetNamespace()}:
	default:
		logging.Warn(logf.FromContext(ctx), "Dropped a Kubernetes event: too many wait to be posted",
			"event", reason, "note", message)
	}
}

// Silent posts nothing.
type Silent struct{}

// Post drops the event, as it is meant to.
func (Silent) Post(context.Context, map[string]any, string, string, string) {}

// Start posts events until the context ends, and then drains the queue.
func (p *Poster) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			p.drain(ctx)
			return nil
		case next := <-p.queue:
			about := next.about(ctx)
			err := p.create(about, next.event)
			if err != nil && ctx.Err() != nil {
				p.drain(ctx, next)
				return nil
			}
			next.logFailure(about, err)
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
		next.logFailure(about, p.create(about, next.event))
	}
	if left := len(p.queue); left > 0 {
		logging.Warn(logf.FromContext(ctx), "Dropped Kubernetes events: operator exits before they are posted",
			"count", left)
	}
}

// create posts one event. Those about objects without a namespace get one, and say it of these, too.
func (p *Poster) create(ctx context.Context, event *corev1.Event) error {
	if event.Namespace == "" {
		event.Namespace = metav1.NamespaceDefault
		if p.DefaultNamespace != nil {
			event.Namespace = cmp.Or(p.DefaultNamespace(), metav1.NamespaceDefault)
		}
		event.InvolvedObject.Namespace = event.Namespace
	}
	return p.client.Create(ctx, event)
}

// about has the object in all lines, also in those about the request.
func (p *post) about(ctx context.Context) context.Context {
	o := p.event.InvolvedObject
	log := logging.OfKind(logf.FromContext(ctx), o.GroupVersionKind())
	log = logging.OfObject(log, types.NamespacedName{Namespace: p.namespace, Name: o.Name}, o.UID)
	return logf.IntoContext(ctx, log)
}

func (p *post) logFailure(ctx context.Context, err error) {
	if err != nil {
		logging.Warn(logf.FromContext(ctx), "Failed to post a Kubernetes event; dropping it",
			"event", p.event.Reason, "note", p.event.Message, "error", err.Error())
	}
}

func (p *Poster) event(about *unstructured.Unstructured, eventType, reason, message string) *corev1.Event {
	if about.GetAPIVersion() == "v1" && about.GetKind() == "Event" {
		return nil
	}
	now := time.Now()
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: about.GetNamespace(), GenerateName: namePrefix},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: about.GetAPIVersion(), Kind: about.GetKind(), Namespace: about.GetNamespace(),
			Name: about.GetName(), UID: about.GetUID(),
		},
		Type: eventType, Reason: reason, Message: shorten(message), Action: action,
		FirstTimestamp: metav1.NewTime(now), LastTimestamp: metav1.NewTime(now), EventTime: metav1.NewMicroTime(now),
		Source:              corev1.EventSource{Component: p.component},
		ReportingController: p.component, ReportingInstance: instance,
	}
}

// shorten cuts the middle out of a message that is longer than the API takes: the beginning says what happened, the
// end often why. Lengths are in code points.
func shorten(message string) string {
	const limit, head, tail = 1024, 511, 510
	runes := []rune(message)
	if len(runes) <= limit {
		return message
	}
	return string(runes[:head]) + "..." + string(runes[len(runes)-tail:])
}
