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
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/hierarchies"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// Types of Kubernetes events by level. [Change.Event] posts any type. Error is not a type of Kubernetes, but Kopf posts
// it.
const (
	typeNormal  = "Normal"
	typeWarning = "Warning"
	typeError   = "Error"
)

// EventRecorder posts Kubernetes events, see [Change.EventRecorderFor]. The zero value posts none.
type EventRecorder struct {
	// poster is nil for a recorder that posts nothing. bodies are the objects that the events are about, with at least
	// their reference fields.
	poster handlers.EventPoster
	log    logr.Logger
	bodies []map[string]any
}

// Info is [Change.Info].
func (e EventRecorder) Info(reason, message string) {
	e.postAtLevel(slog.LevelInfo, typeNormal, reason, message)
}

// Warn is [Change.Warn].
func (e EventRecorder) Warn(reason, message string) {
	e.postAtLevel(slog.LevelWarn, typeWarning, reason, message)
}

// Exception is [Change.Exception].
func (e EventRecorder) Exception(reason, message string, err error) {
	if err != nil {
		reason = cmp.Or(reason, eventReasonOf(err))
		message = strings.TrimSpace(message + " " + err.Error())
	}
	e.postAtLevel(slog.LevelError, typeError, reason, message)
}

// Event is [Change.Event].
func (e EventRecorder) Event(eventType, reason, message string) {
	for _, body := range e.bodies {
		e.poster.Post(logf.IntoContext(context.Background(), e.log), body, eventType, reason, message)
	}
}

// postAtLevel posts an event unless its level is below the configured one. Event does not have a level, so it always
// posts.
func (e EventRecorder) postAtLevel(level slog.Level, eventType, reason, message string) {
	if e.poster != nil && e.poster.Takes(level) {
		e.Event(eventType, reason, message)
	}
}

// eventRecorder returns a recorder for the handled object. In a filter, it records an error and returns an empty
// recorder.
func (c *Change[T]) eventRecorder() EventRecorder {
	c.mustHaveCall()
	if c.call.Events == nil {
		c.runLocked(func() error { return errReadOnly })
		return EventRecorder{}
	}
	return EventRecorder{c.call.Events, c.log, []map[string]any{c.call.Cause.Body()}}
}

// Info posts a Normal event, unless [PostingSettings].Level is higher. Kopf: info.
func (c *Change[T]) Info(reason, message string) { c.eventRecorder().Info(reason, message) }

// Warn posts a Warning event, unless [PostingSettings].Level is higher. Kopf: warn.
func (c *Change[T]) Warn(reason, message string) { c.eventRecorder().Warn(reason, message) }

// Exception posts an Error event with the error, unless [PostingSettings].Level is higher. An empty reason is derived
// from the error. Kopf: exception.
func (c *Change[T]) Exception(reason, message string, err error) {
	c.eventRecorder().Exception(reason, message, err)
}

// Event posts a Kubernetes event about the object, without waiting. Failures are logged. The reason is a CamelCase
// word. Messages above 1024 characters are cut. See docs/events.md. Kopf: event.
func (c *Change[T]) Event(eventType, reason, message string) {
	c.eventRecorder().Event(eventType, reason, message)
}

// EventRecorderFor returns a recorder for other objects. An unknown kind fails the handler. Kopf: the first argument of
// event.
//
//	c.EventRecorderFor(pod, claim).Warn("Evicted", "the node is gone")
func (c *Change[T]) EventRecorderFor(objects ...any) EventRecorder {
	about := c.eventRecorder()
	if about.poster == nil {
		return about
	}
	bodies, err := referenceBodies(objects, c.clientScheme())
	if err != nil {
		c.runLocked(func() error { return fmt.Errorf("posting Kubernetes events by handler %q: %w", c.ID, err) })
	}
	about.bodies = bodies
	return about
}

// clientScheme returns the scheme of the client; nil without a client.
func (c *Change[T]) clientScheme() *runtime.Scheme {
	if c.Client == nil {
		return nil
	}
	return c.Client.Scheme()
}

// referenceBodies returns the reference fields of the objects, as far as posting an event needs them. After an error,
// it returns the objects before it, which still get their events.
func referenceBodies(objects []any, scheme *runtime.Scheme) (bodies []map[string]any, err error) {
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

// eventReasonOf returns the reason of an event about an error: as in Kopf, the name of its type. For errors of the API
// server, it is the reason of the status.
func eventReasonOf(err error) string {
	if _, temporary := execution.RetryAfter(err); temporary {
		return "TemporaryError"
	}
	if execution.IsPermanent(err) {
		return "PermanentError"
	}
	// Unexported types, such as those of package fmt, say nothing to users: look for the first exported one below.
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
