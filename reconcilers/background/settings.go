package background

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

const (
	// DefaultPolling is how often a log line reminds of a handler that does not end. Kopf:
	// background.cancellation_polling.
	DefaultPolling = 60 * time.Second
	// DefaultTicks is how many ticks of timers of one kind run at once.
	DefaultTicks = 1000
	// DefaultInstantExit is how long a handler may take to end by itself before its context is cancelled.
	DefaultInstantExit = 10 * time.Millisecond
	// exitTimeout is how long an operator that exits waits for cancelled handlers without a cancellation timeout.
	exitTimeout = 5 * time.Second
)

// Writer sends patches of one object.
type Writer interface {
	ApplyRetrying(
		ctx context.Context, target patching.Target, patch patching.Patch, refetch patching.Refetch,
	) (patching.Result, error)
}

// Service is what the supervisor needs of the controller of the kind while that runs.
type Service interface {
	// Latest is the newest state of the object that is known; nil if there is none. It is shared.
	Latest(key types.NamespacedName, uid types.UID) map[string]any
	// Enqueue requests a call of Fire after a delay; or, without a handler, a pass over the object.
	Enqueue(key types.NamespacedName, handler string, after time.Duration)
}

// Settings are those of all background handlers of one kind.
type Settings struct {
	// Handlers are the daemons and timers, in the order of registration.
	Handlers []*adapters.Handler
	// Writer sends what handlers wrote, within WriteTimeout; StatusSubresource says whether the status has a URL of its
	// own.
	Writer            Writer
	WriteTimeout      time.Duration
	StatusSubresource bool
	// Events posts Kubernetes events for the handlers.
	Events handlers.Poster
	// Backoff is the default delay after ordinary errors; zero is 60 seconds.
	Backoff time.Duration
	// Polling is the default of the handlers; zero is DefaultPolling.
	Polling time.Duration
	// LeaveFinalizers requests no pass over an object whose handler has ended by itself: as in Kopf, the object keeps
	// its finalizer until its next event.
	LeaveFinalizers bool
	// InstantExit is how long a handler that is asked to stop may take to end by itself; zero is DefaultInstantExit.
	// Kopf: background.instant_exit_timeout.
	InstantExit time.Duration
	// Forgotten is called for an object that is gone, when its last handler has ended; it must be quick. Nil is nobody.
	Forgotten func(types.UID)
	// Log names the kind.
	Log logr.Logger
}
