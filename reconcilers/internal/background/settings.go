package background

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
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

// StopReason is a set of flags: why a handler must stop, and which stages of stopping it has reached. Kopf:
// DaemonStoppingReason of stoppers.
type StopReason uint8

// The flags. String returns Kopf's names of them.
const (
	// Unmatched: the object does not match the filters any more.
	Unmatched StopReason = 1 << iota
	// Deleted: the object is being deleted, or is gone.
	Deleted
	// Pausing and Exiting: the operator pauses or exits.
	Pausing
	Exiting
	// Signalled: the cancellation backoff has begun.
	Signalled
	// Cancelled: the context is cancelled.
	Cancelled
	// Abandoned: the supervisor does not wait for the handler any more.
	Abandoned
)

// names are Kopf's names of the flags, from the lowest bit on.
var flagNames = []string{
	"FILTERS_MISMATCH", "RESOURCE_DELETED", "OPERATOR_PAUSING", "OPERATOR_EXITING", "DAEMON_SIGNALLED",
	"DAEMON_CANCELLED", "DAEMON_ABANDONED",
}

// String returns the names of the flags, joined by commas.
func (r StopReason) String() string {
	var all []string
	for i, name := range flagNames {
		if r&(1<<i) != 0 {
			all = append(all, name)
		}
	}
	return strings.Join(all, ",")
}

// CancelCause returns the reason as a cancellation cause; nil if there is none yet. With several reasons, the most
// final one wins.
func (r StopReason) CancelCause() error {
	switch {
	// A deletion and an exit are permanent for the function, a pause or a mismatch may end.
	case r&Deleted != 0:
		return execution.ErrDeleted
	case r&Exiting != 0:
		return execution.ErrExiting
	case r&Pausing != 0:
		return execution.ErrPaused
	case r&Unmatched != 0:
		return execution.ErrUnmatched
	default:
		return nil
	}
}

// Limit limits how many functions run at once. Further functions wait in a queue. The zero value does not limit.
type Limit struct {
	// Max is how many functions may run at once; zero means any number.
	Max int

	mu      sync.Mutex
	running int
	waiting []func() // in order of arrival
}

// Go runs the function on a goroutine as soon as the limit allows. It returns at once, with whether the function has to
// wait and how many waiting functions are ahead of it.
func (l *Limit) Go(run func()) (waits bool, ahead int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Waiting functions do not hold goroutines.
	if l.Max > 0 && l.running >= l.Max {
		l.waiting = append(l.waiting, run)
		return true, len(l.waiting) - 1
	}
	l.running++
	go l.runAll(run)
	return false, 0
}

// runAll runs the function and then waiting ones on the same goroutine, so that the count of running ones does not
// change.
func (l *Limit) runAll(run func()) {
	for run != nil {
		run()
		run = l.nextWaiting()
	}
}

// nextWaiting takes the first waiting function. Without one, it returns nil and frees the place of the caller.
func (l *Limit) nextWaiting() (run func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.running--
		return nil
	}
	run, l.waiting = l.waiting[0], l.waiting[1:]
	return run
}
