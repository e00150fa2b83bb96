package kopf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"unicode"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/hierarchies"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// The types of Kubernetes events that are posted by level. [Change.Event] posts any.
const (
	typeNormal  = "Normal"
	typeWarning = "Warning"
	typeError   = "Error"
)

// Events posts Kubernetes events about some objects: those of [Change.EventRecorderFor]. The zero value posts none.
type EventRecorder struct {
	poster handlers.Poster
	log    logr.Logger
	bodies []map[string]any
}

// Info posts a Kubernetes event of the type Normal, see [Change.Info].
func (e EventRecorder) Info(reason, message string) {
	e.post(slog.LevelInfo, typeNormal, reason, message)
}

// Warn posts a Kubernetes event of the type Warning, see [Change.Warn].
func (e EventRecorder) Warn(reason, message string) {
	e.post(slog.LevelWarn, typeWarning, reason, message)
}

// Exception posts a Kubernetes event of the type Error about an error, see [Change.Exception].
func (e EventRecorder) Exception(reason, message string, err error) {
	if err != nil {
		reason = cmp.Or(reason, wordFor(err))
		message = strings.TrimSpace(message + " " + err.Error())
	}
	e.post(slog.LevelError, typeError, reason, message)
}

// Event posts a Kubernetes event of any type, see [Change.Event].
func (e EventRecorder) Event(eventType, reason, message string) {
	for _, body := range e.bodies {
		e.poster.Post(logf.IntoContext(context.Background(), e.log), body, eventType, reason, message)
	}
}

func (e EventRecorder) post(level slog.Level, eventType, reason, message string) {
	if e.poster != nil && e.poster.Takes(level) {
		e.Event(eventType, reason, message)
	}
}

// events posts about the handled object.
func (c *Change[T]) events() EventRecorder {
	c.needCall()
	if c.call.Events == nil {
		c.do(func() error { return errOnlyReading })
		return EventRecorder{}
	}
	return EventRecorder{c.call.Events, c.log, []map[string]any{c.call.Cause.Body()}}
}

// Info posts a Kubernetes event of the type Normal about the object, unless [PostingSettings].Level is above
// slog.LevelInfo. See Event. Kopf: info.
func (c *Change[T]) Info(reason, message string) { c.events().Info(reason, message) }

// Warn posts a Kubernetes event of the type Warning about the object, unless [PostingSettings].Level is above
// slog.LevelWarn. See Event. Kopf: warn.
func (c *Change[T]) Warn(reason, message string) { c.events().Warn(reason, message) }

// Exception posts a Kubernetes event of the type Error about the object, unless [PostingSettings].Level is above
// slog.LevelError: the message, and the text of the error behind it. An empty reason is that of an error of the API,
// such as NotFound, else the type of the error, such as PathError, else Error; of [Permanent] and [Temporary] ones,
// PermanentError and TemporaryError. A nil error adds nothing. kubectl shows the type as it is; some tools know Normal
// and Warning only. See Event. Kopf: exception.
func (c *Change[T]) Exception(reason, message string, err error) {
	c.events().Exception(reason, message, err)
}

// Event posts a Kubernetes event about the object. The type is usually Normal or Warning; the reason is one word in
// camel case, such as "Provisioned"; of a message above 1024 characters, the middle is cut out. Posting neither waits
// nor fails: an event that cannot be posted is a line in the log. docs/events.md has what is counted, limited and
// dropped.
//
// That of an object without a namespace goes to the one of the kubeconfig's context, of the pod, or of
// [ConnectionInfo].DefaultNamespace, else to "default"; in a manager of the project, always to "default". Kopf: event.
func (c *Change[T]) Event(eventType, reason, message string) {
	c.events().Event(eventType, reason, message)
}

// About posts Kubernetes events about other objects than the handled one: typed ones that the scheme of the operator
// knows, unstructured ones, mappings, and slices of them, as they are or would be in the cluster.
//
//	c.EventRecorderFor(pod, claim).Warn("Evicted", "the node is gone")
//
// A value that is not an object, or whose kind is not known, is an error of the handler. Kopf: the first argument of
// event, info, warn and exception.
func (c *Change[T]) EventRecorderFor(objects ...any) EventRecorder {
	about := c.events()
	if about.poster == nil {
		return about
	}
	bodies, err := bodiesOf(objects, c.scheme())
	if err != nil {
		c.do(func() error { return fmt.Errorf("posting Kubernetes events by handler %q: %w", c.ID, err) })
	}
	about.bodies = bodies
	return about
}

// scheme is nil if there is no client.
func (c *Change[T]) scheme() *runtime.Scheme {
	if c.Client == nil {
		return nil
	}
	return c.Client.Scheme()
}

// bodiesOf are as much of the objects as it takes to post an event.
func bodiesOf(objects []any, scheme *runtime.Scheme) (bodies []map[string]any, err error) {
	for object, err := range hierarchies.Objects(objects) {
		if err != nil {
			return bodies, err
		}
		if body, ok := object.(map[string]any); ok && body != nil {
			bodies = append(bodies, body)
			continue
		}
		typed, ok := object.(client.Object)
		if !ok {
			return bodies, fmt.Errorf("%T is not an object", object)
		}
		about, err := hierarchies.ObjectReference(typed, hierarchies.Scheme(scheme))
		if err != nil {
			return bodies, err
		}
		bodies = append(bodies, map[string]any{
			"apiVersion": about.APIVersion, "kind": about.Kind,
			"metadata": map[string]any{"namespace": about.Namespace, "name": about.Name, "uid": string(about.UID)},
		})
	}
	return bodies, nil
}

// wordFor is how an error is called in a word.
func wordFor(err error) string {
	if _, temporary := execution.RetryAfter(err); temporary {
		return "TemporaryError"
	}
	if execution.IsPermanent(err) {
		return "PermanentError"
	}
	for ; err != nil; err = errors.Unwrap(err) {
		status, ok := err.(apierrors.APIStatus)
		if ok && status.Status().Reason != "" {
			return string(status.Status().Reason)
		}
		kind := reflect.TypeOf(err)
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		if name := kind.Name(); name != "" && unicode.IsUpper([]rune(name)[0]) {
			return name
		}
	}
	return "Error"
}

// Exception posts a Kubernetes event about an error, see [Change.Exception].
func (r *Task[T]) Exception(reason, message string, err error) {
	r.change.Exception(reason, message, err)
}

// About posts Kubernetes events about other objects, see [Change.EventRecorderFor].
func (r *Task[T]) EventRecorderFor(objects ...any) EventRecorder {
	return r.change.EventRecorderFor(objects...)
}

// Exception posts a Kubernetes event about an error, see [Change.Exception].
func (e *WatchEvent[T]) Exception(reason, message string, err error) {
	e.change.Exception(reason, message, err)
}

// About posts Kubernetes events about other objects, see [Change.EventRecorderFor].
func (e *WatchEvent[T]) EventRecorderFor(objects ...any) EventRecorder {
	return e.change.EventRecorderFor(objects...)
}
