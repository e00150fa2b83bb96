package background

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

const (
	// DefaultPolling is the interval of the log lines about a handler that does not stop. Kopf:
	// background.cancellation_polling.
	DefaultPolling = 60 * time.Second
	// DefaultTicks is how many ticks of timers of one resource run at once.
	DefaultTicks = 1000
	// DefaultInstantExit is how long a handler may take to stop by itself before the cancellation backoff begins.
	DefaultInstantExit = 10 * time.Millisecond
	// DefaultDeletionWait is how long deletion handlers wait for a background handler of their object whose context has
	// ended, if it has no cancellation timeout.
	DefaultDeletionWait = time.Minute
	// exitTimeout is how long an exiting operator waits for cancelled handlers without a cancellation timeout.
	exitTimeout = 5 * time.Second
)

// Writer sends patches of one object.
type Writer interface {
	ApplyRetrying(
		ctx context.Context, target patching.Target, patch patching.Patch, refetch patching.Refetch,
	) (patching.Result, error)
}

// Service is what the supervisor needs of a running controller.
type Service interface {
	// Newest gives the newest known state of the object; nil if there is none.
	Newest(key types.NamespacedName, uid types.UID) *jsontext.Object
	// Enqueue requests a call of Fire after a delay; or, without a handler, a pass over the object.
	Enqueue(key types.NamespacedName, handler string, after time.Duration)
}

// Gate says whether anything may begin: not while the operator is paused.
type Gate interface {
	// Open tells whether another attempt may begin.
	Open() bool
	// Enter counts the beginning of what makes attempts, and writes what comes of them, such as a daemon. It is false,
	// and counts nothing, if the gate is closed. Otherwise, Leave follows.
	Enter() bool
	Leave()
}

// Settings hold for all background handlers of one resource.
type Settings struct {
	// Handlers are the daemons and timers, in the order of registration.
	Handlers []*adapters.Handler
	// Resource is what the objects are; nil is not known.
	Resource *discovery.Resource
	// Writer sends the handlers' patches, within WriteTimeout; StatusSubresource says whether the status has a URL of
	// its own.
	Writer            Writer
	WriteTimeout      time.Duration
	StatusSubresource bool
	// Events posts Kubernetes events for the handlers.
	Events handlers.Poster
	// Journal is told what is decided; nil is not.
	Journal *journal.Kind
	// Backoff is the default delay after ordinary errors; zero is 60 seconds.
	Backoff time.Duration
	// Polling is the interval of log lines about handlers that do not stop; zero is DefaultPolling.
	Polling time.Duration
	// LeaveFinalizers requests no pass over an object whose handler has ended by itself: as in Kopf, the object keeps
	// its finalizer until its next event.
	LeaveFinalizers bool
	// InstantExit is how long a handler that is asked to stop may take to stop by itself; zero is DefaultInstantExit.
	// Kopf: background.instant_exit_timeout.
	InstantExit time.Duration
	// PauseTimeout is how long a tick may go on when the operator pauses, before its context ends.
	PauseTimeout time.Duration
	// Gate says whether attempts may begin; nil is always.
	Gate Gate
	// Permission ends when nothing may be written any more, as others may handle the objects: the contexts of handlers
	// end at once then. Nil never does.
	Permission context.Context //nolint:containedctx // only its end is of interest, and why
	// Forgotten gets the uid of a deleted object when its last handler has ended; it must be quick. It may be nil.
	Forgotten func(types.UID)
	// Log names the resource.
	Log logr.Logger
}
