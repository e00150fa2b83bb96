package background

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

const (
	// DefaultDeletionWait is how long deletion handlers wait for a background handler of their object whose context has
	// ended, if it has no cancellation timeout.
	DefaultDeletionWait = time.Minute
	// exitTimeout is how long an exiting operator waits for cancelled handlers without a cancellation timeout.
	exitTimeout = 5 * time.Second
)

// Service is what the supervisor needs of a running controller.
type Service interface {
	// Newest gives the newest known state of the object; nil if there is none.
	Newest(key types.NamespacedName, uid types.UID) *jsontext.Object
	// Enqueue requests a call of Fire after a delay; or, without a handler, a pass over the object.
	Enqueue(key types.NamespacedName, handler string, after time.Duration)
}

// Settings hold for all background handlers of one resource.
type Settings struct {
	// Kind has no cache and no place: the settings outlive the controller.
	kind.Kind
	// Handlers are the daemons and timers, in the order of registration.
	Handlers []*adapters.Handler
	// Permission ends when nothing may be written any more, as others may handle the objects: the contexts of handlers
	// end at once then. Nil never does.
	Permission context.Context //nolint:containedctx // only its end is of interest, and why
	// Forgotten gets the uid of a deleted object when its last handler has ended; it must be quick. It may be nil.
	Forgotten func(types.UID)
	// Log names the resource.
	Log logr.Logger
}
