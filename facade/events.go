package facade

import (
	"context"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// Info posts a Kubernetes event of the type Normal about the object. See Event. Kopf: info.
func (c *Change[T]) Info(reason, message string) { c.Event("Normal", reason, message) }

// Warn posts a Kubernetes event of the type Warning about the object. See Event. Kopf: warn.
func (c *Change[T]) Warn(reason, message string) { c.Event("Warning", reason, message) }

// Event posts a Kubernetes event about the object. The type is usually Normal or Warning; the reason is one word in
// camel case, such as "Provisioned"; of a message above 1024 characters, the middle is cut out. Posting neither waits
// nor fails: an event that cannot be posted is a line in the log. Kopf: event.
func (c *Change[T]) Event(kind, reason, message string) {
	if c.call.Events == nil {
		c.attempt(func() error { return errOnlyReading })
		return
	}
	c.call.Events.Post(logf.IntoContext(context.Background(), c.log), c.call.Cause.Body, kind, reason, message)
}
