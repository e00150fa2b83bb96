package changes

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

// maxRounds limits how often a pass restarts after its own writes. A creation usually takes two rounds.
const maxRounds = 8

// BackgroundRunner runs the background handlers of objects.
type BackgroundRunner interface {
	// Supervise starts and stops the background handlers of the object. It reports whether the object needs the
	// finalizer for them, now or later, and whether a deletion must wait because a handler is still running.
	Supervise(ctx context.Context, c *cause.Cause) (holds, busy bool, err error)
	// DelaysDeletion reports whether the deletion handlers of the object must wait. A pass is requested when that
	// changes.
	DelaysDeletion(c *cause.Cause) bool
}

// Dependents are other objects because of which objects need the finalizer.
type Dependents interface {
	// HasDependents reports whether the object has dependents.
	HasDependents(body map[string]any) bool
	// Release releases the dependents of an object that is being deleted. It can be called repeatedly.
	Release(ctx context.Context, body map[string]any) error
	// Forget drops the data about an object that is gone.
	Forget(uid types.UID)
}

// ChangeHandling holds the configuration with which one operator handles the objects of one kind. All passes share it,
// and it is never modified.
type ChangeHandling struct {
	kind.HandledKind
	// Handlers are the changing handlers of the kind with their adapters, in the order of registration.
	Handlers []*adapters.HandlerChain
	// Lens reads the essences of objects.
	Lens *cause.Lens
	// InterimStorage stores the essence that the first successful handler of a cause saw, until the cause ends.
	InterimStorage InterimStorage
	// Sight is the widest part of an object that its handlers depend on. A change outside of it does not need a pass.
	Sight handlers.Sight
	// Background runs daemons and timers; nil if the kind does not have any.
	Background BackgroundRunner
	// Dependents must be released before the finalizer is removed; nil if there are none.
	Dependents Dependents
	// Waits has the children that handlers wait for; nil if handlers cannot wait.
	Waits Waits
	// Conditions configures the conditions of the objects; nil if they do not get any.
	Conditions *Conditions
	// IneffectivePatchLabels has the labels of the handlers whose ineffective patches were logged: one line for each;
	// nil logs nothing.
	IneffectivePatchLabels *sync.Map
}

// errUnsettled delays the object like other framework errors: another client seems to revert our writes.
var errUnsettled = fmt.Errorf(
	"the object is not as our own writes leave it, after %d of them: is a webhook or another controller undoing them?",
	maxRounds,
)

// PassResult is the result of a pass for the queue and the metrics.
type PassResult struct {
	// RequeueAfter is the delay until the next pass without an event; nil means none.
	RequeueAfter *time.Duration
	// Gone is true if the object does not exist any more.
	Gone bool
	// Released is true if a write of the pass removed the last finalizer: a cached object is stale from now on.
	Released bool
	// Answer is the API server's last answer in the pass, and can be newer than the cache. It is nil without requests,
	// and for an object that is gone.
	Answer *jsontext.LazyObject
	// HasOpenChange is true if a change is unfinished. Since is when the first of its handlers was selected, or zero if
	// that is not known. Waiting are the handlers whose next attempt is due later.
	HasOpenChange   bool
	OpenSince       time.Time
	WaitingHandlers []WaitingHandler
	// ClosedReason is the reason of a change whose handlers have just finished; empty if there is none.
	ClosedReason cause.Reason
	// MemoryLost is true if another client has removed or replaced our memory on the object, and the loss was logged.
	MemoryLost bool
	// DeletionHandled is true if the deletion of the object was handled, by this pass or, if that is known, by an
	// earlier one.
	DeletionHandled bool
	// LoopingHandlers are the handlers that change the object each time they are called for their own change. They are
	// delayed.
	LoopingHandlers []string
	// Settled is true if the object does not need another pass until it changes: a pass over the same state would find
	// nothing to do.
	Settled bool
}

// WaitingHandler is a handler that waits for its next attempt.
type WaitingHandler struct {
	Handler string
	Until   time.Time
}

// BlockedError reports that an object cannot be handled until it is changed: its memory is malformed, or it cannot be
// decoded for a filter.
type BlockedError struct{ Err error }

// Error returns the text of the reason.
func (e *BlockedError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *BlockedError) Unwrap() error { return e.Err }

// HandlerIDs returns the ids of all handlers of the kind, in the order of registration. The records under these ids are
// ours.
func (h *ChangeHandling) HandlerIDs() []string { return adapters.HandlerIDs(h.Handlers) }

// IgnoresObject reports, without decoding the object, that a pass would have nothing to do: the kind does not have
// conditions, or changing or background handlers, and the object has neither our finalizer nor annotations with our
// prefix from earlier times.
func (h *ChangeHandling) IgnoresObject(object *compact.CachedObject) bool {
	if len(h.Handlers) > 0 || h.Background != nil || h.Conditions != nil {
		return false
	}
	return !object.MayMention(h.Finalizer, h.InterimStorage.Prefix)
}

// failuresKey returns the key of the failed handlers on the object.
func (h *ChangeHandling) failuresKey(body map[string]any) string {
	return keys.AnnotationKeyOn(body, h.Prefix, h.InterimStorage.Bound, keys.FailedHandlers)
}

// holdsOnFailure reports whether the permanent failure of the deletion handler with this id keeps the object.
func (h *ChangeHandling) holdsOnFailure(id string) bool {
	for _, handler := range h.Handlers {
		if d := handler.Description; d.HoldOnFailure && d.Reason == cause.Delete && d.ID == id {
			return true
		}
	}
	return false
}

// annotationsOf returns the annotations of a body, which can be malformed.
func annotationsOf(body map[string]any) map[string]any {
	metadata, _ := body["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations
}
