package background

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

const (
	// DefaultDeletionWait is how long deletion handlers wait for a background handler of their object, from the end of
	// its context on, if it does not have a cancellation timeout.
	DefaultDeletionWait = time.Minute
	// exitTimeout is how long an exiting operator waits for cancelled handlers without a cancellation timeout. Kopf
	// abandons them at once.
	exitTimeout = 5 * time.Second
)

// Service is the running controller, as the supervisor uses it.
type Service interface {
	// Newest returns the newest known state of the object; nil if there is none.
	Newest(key types.NamespacedName, uid types.UID) *jsontext.LazyObject
	// Enqueue requests a call of [Supervisor.FireTimer] after a delay. Without a handler, it requests a pass over the
	// object.
	Enqueue(key types.NamespacedName, handler string, after time.Duration)
}

// KindSettings apply to all background handlers of one resource.
type KindSettings struct {
	// Kind has no cache and no slot, because the settings outlive the controller.
	kind.HandledKind
	// Handlers are the daemons and timers, in the order of registration.
	Handlers []*adapters.HandlerChain
	// Permission ends when nothing may be written any more, because other processes may handle the objects. The
	// contexts of handlers end at once then. Nil never ends.
	Permission context.Context //nolint:containedctx // only its end is of interest, and why
	// OnForgotten is called for a deleted object when its last handler has ended, unless none was running at the
	// deletion. It must be quick. It may be nil.
	OnForgotten func(key types.NamespacedName, uid types.UID)
	// Range is the range of the objects, if the replicas share them.
	Range sharding.Range
	// Log is a logger that names the resource.
	Log logr.Logger
}
