package changes

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/requirements"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// rounds limits how often a pass starts over on the answer to its own write: twice is usual for a creation.
const rounds = 8

// Background is what runs beside the changes of objects.
type Background interface {
	// Supervise starts and stops what is to run for the object, and tells whether the object must be held on its
	// deletion for that, be it now or later; and whether a deletion must wait, as something still runs.
	Supervise(ctx context.Context, c *cause.Cause) (holds, busy bool, err error)
	// DelaysDeletion reports whether the deletion handlers of the object are to wait. A pass is requested when that
	// changes.
	DelaysDeletion(c *cause.Cause) bool
}

// Dependents are objects elsewhere that other objects need their finalizer for.
type Dependents interface {
	// Held tells whether the object has such.
	Held(body map[string]any) bool
	// Release lets go of them, as the object is being deleted. It may be called again.
	Release(ctx context.Context, body map[string]any) error
	// Forget drops what is kept for an object that is gone.
	Forget(uid types.UID)
}

// Handling is how the objects of one kind are handled by one operator. It is shared by all passes, and never changed.
type Handling struct {
	kind.Kind
	// Handlers are the Reconcilers of the changing handlers of the kind, in the order of registration.
	Handlers []*adapters.Handler
	// Lens reads the essences.
	Lens *cause.Lens
	// Interim keeps the essence that the first successful handler of a cause saw, until the cause ends.
	Interim Interim
	// Sight is what it depends on whether anything is to be done for an object: the widest of its handlers.
	Sight requirements.Sight
	// Background runs daemons and timers; nil if there are none.
	Background Background
	// Dependents are what must be released before the finalizer is removed; nil if there are none.
	Dependents Dependents
	// Waits are the children that handlers wait for; nil if none can.
	Waits Waits
	// Conditions are what objects tell of the handlers in their status; nil is nothing.
	Conditions *Conditions
	// Restored are the labels of handlers whose patches had no effect, which is logged once for each; nil logs none.
	Restored *sync.Map
}

// errUnsettled delays the object as any error of the framework: our writes do not last, so another client undoes them.
var errUnsettled = fmt.Errorf(
	"the object is not as our own writes leave it, after %d of them: is a webhook or another controller undoing them?",
	rounds,
)

// Next says what must follow a pass.
type Next struct {
	// After is when the object must be looked at again without any event; nil is never.
	After *time.Duration
	// Gone is true if the object turned out not to exist any more.
	Gone bool
	// Released is true if a write of the pass let the object go for good: what a cache may still show of it is past.
	Released bool
	// Written is the API server's last answer to the requests of the pass: newer than what a cache may have yet. It is
	// nil if there were none, or if the answer is the last word on the object.
	Written *jsontext.Object
	// Open is true if a change is not handled to its end; Since is when the first of its handlers was selected, zero if
	// none is known, and Waiting are those of its handlers whose next attempt is to come.
	Open    bool
	Since   time.Time
	Waiting []Waiting
	// Closed is the reason of a change whose handlers are all finished now; empty if there is none.
	Closed cause.Reason
	// Lost is true if another client has removed or replaced our memory on the object, and that is logged.
	Lost bool
	// Deletion is true if the deletion of the object was handled, by this pass or, as far as that is known, before.
	Deletion bool
	// Looping are the handlers that change the object each time that their own change calls them. They are delayed.
	Looping []string
	// Settled is true if nothing is to be done for the object as it is known by now, until it changes: another pass
	// over that state would find the same as this one.
	Settled bool
}

// Waiting is a handler that waits for its next attempt.
type Waiting struct {
	Handler string
	Until   time.Time
}

// Memory is what is known of one object between its passes, beyond what is persisted on it. It belongs to a uid.
// The zero value is an object of which nothing is known.
type Memory struct {
	// Initial is true if the object was in the first listing and was not handled to the end since.
	Initial bool
	// Handled is what this process knows of our memory on the object, should another client remove it. It is kept for
	// every handled object, so it is small, and does not count as something that is kept.
	Handled Handled

	unwritten *outcomes // what handlers did and the API server did not take; nil if there is nothing
	uncertain bool      // whether the last write was done is not known

	missingFields string          // the fields of handlers of which it was logged that the object cannot have them
	longDelays    string          // the handlers of which it was logged that they are delayed for very long
	logged        map[string]bool // the errors of its memory that were logged, of an object that is being deleted

	records map[string]progress.Record // what could not be stored of such an object
	retried uint64                     // the edit of such an object for which handlers were called again, or zero

	open   openRecords // the records that the object has by our last write, while a cause is open
	losses *losses     // of our memory on the object; nil without any

	ownWrites *ownWrites // that call handlers; nil without any

	told int64 // of which generation conditions were written without news of handlers, plus one; zero is none
}

// Handled is what is remembered of a handled object. The zero value is nothing.
type Handled struct {
	// Hash is that of the last-handled essence, by [cause.Hash]; zero if the object was never handled to the end.
	Hash uint64
	// Held is true if the object had our finalizer.
	Held bool
}

// mostLogged bounds these texts: users who can edit the object can cause any number of them.
const mostLogged = 16

// isNew tells whether the error was not logged yet; it is to be logged now.
func (m *Memory) isNew(err error) bool {
	text := err.Error()
	if m.logged[text] {
		return false
	}
	if m.logged == nil || len(m.logged) >= mostLogged {
		m.logged = map[string]bool{}
	}
	m.logged[text] = true
	return true
}

// BlockedError says that an object cannot be handled until it is changed: its memory is malformed, or it cannot
// be shown to a filter.
type BlockedError struct{ Err error }

// Error names what is malformed.
func (e *BlockedError) Error() string { return e.Err.Error() }

// Unwrap gives the reason.
func (e *BlockedError) Unwrap() error { return e.Err }
