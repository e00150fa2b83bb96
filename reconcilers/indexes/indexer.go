package indexes

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

// slowCallThreshold is the duration above which a call is logged: all events of the resource wait for it.
const slowCallThreshold = 100 * time.Millisecond

// eventDeleted is the type of the event of a deleted object.
const eventDeleted = "DELETED"

// EventLeft is the type of the event of an object that is gone, or does not match the selector of a watch any more. The
// watch does not distinguish the two.
const EventLeft = "LEFT"

// Indexer fills the indices from the events of one resource. Its feeds report the events.
type Indexer struct {
	// guards the fields below but latest, also while an index function runs
	mu          sync.Mutex
	task        IndexTask                        // of the latest feed
	feedCount   int                              // the number of feeds so far
	feeds       []*Feed                          // those that count, the latest one last
	latest      atomic.Pointer[Feed]             // the last of feeds; readable while a function runs
	reports     map[types.UID]feedReport         // reports of feeds about objects, as other feeds can be behind
	feedNumbers map[types.UID]int                // the number of the latest feed that has reported the object
	accounts    map[accountKey]execution.Account // the failed attempts
	question    execution.Attempt                // reused for the question whether handlers are due
}

// accountKey identifies the attempts of one handler for one object.
type accountKey struct {
	uid     types.UID
	handler string
}

// indexObject calls the index functions for a state of an object that the feed of this number has reported. The caller
// holds the lock.
func (x *Indexer) indexObject(eventType string, object *compact.CachedObject, listing int) {
	if x.feedNumbers == nil {
		x.feedNumbers, x.accounts = map[types.UID]int{}, map[accountKey]execution.Account{}
	}
	uid := object.GetUID()
	x.feedNumbers[uid] = listing
	opened, err := object.Open()
	if err != nil {
		logging.OfObject(x.task.Log, object.ObjectKey(), uid).Error(err,
			"Cannot read an object; keeping its entries in the indices")
		return
	}
	c := &cause.Cause{EventType: eventType, Object: opened, Deleting: object.IsDeleting()}
	for i, h := range x.task.Handlers {
		if h.HasTwin(x.task.Handlers[:i]) {
			continue // it was indexed with the first of them
		}
		log := logging.OfHandler(x.task.Log, object.ObjectKey(), uid, h.Description.ID)
		x.runIndexFunction(logf.IntoContext(context.Background(), log), h, c, uid)
	}
}

// forgetObject removes an object from all indices. The caller holds the lock.
func (x *Indexer) forgetObject(uid types.UID) {
	for _, h := range x.task.Handlers {
		h.Description.Index.Store.ReplaceEntries(uid, nil)
		delete(x.accounts, accountKey{uid, h.Description.ID})
	}
	delete(x.feedNumbers, uid)
}

// runIndexFunction calls one index function for one object and updates the index, if a selection of the function
// matches and is due.
func (x *Indexer) runIndexFunction(ctx context.Context, first *adapters.HandlerChain, c *cause.Cause, uid types.UID) {
	log := logf.FromContext(ctx)
	past := x.accounts[accountKey{uid, first.Description.ID}]
	h, err := x.firstDue(ctx, first, c, past)
	switch {
	case err != nil:
		log.Error(err, "Filter of an index function failed; keeping the entries of the object",
			panics.StackFields(err)...)
		return
	// No selection matches, or the handler waits for its next attempt: the object does not belong into the index.
	case h == nil:
		first.Description.Index.Store.ReplaceEntries(uid, nil)
		return
	}
	// Functions that read the text get the encoded object instead.
	object, err := h.Description.DecodedObject(c)
	if err != nil {
		log.Error(err, "Cannot read an object; keeping its entries in the indices")
		return
	}
	a := execution.NewAttempt(h.Description, c, object)
	a.Account, a.Limits.Backoff, a.Call.Resource = past, x.task.Backoff, x.task.Resource
	// The call runs under the lock, so that entries follow the order of the events.
	began := time.Now()
	h.RunAttempt(ctx, a)
	if took := time.Since(began); took > slowCallThreshold {
		logging.Warn(log, "Index function is slow; all events of its resource wait for it", "took", took.String())
	}
	x.applyOutcome(log, a, began, uid)
}

// firstDue returns the first registration of the index function that matches the object and is due; nil if there is
// none. The error is that of a filter.
func (x *Indexer) firstDue(
	ctx context.Context, first *adapters.HandlerChain, c *cause.Cause, past execution.Account,
) (*adapters.HandlerChain, error) {
	x.question.Call.Cause, x.question.Account = c, past
	defer func() { x.question.Call.Cause = nil }()
	for _, h := range x.task.Handlers {
		if !h.Description.IsTwin(first.Description) {
			continue
		}
		if due, err := h.Ask(ctx, &x.question, execution.Due); err != nil || due {
			return h, err
		}
	}
	return nil, nil
}

// applyOutcome updates the index with the outcome: with new entries, without the object, or not at all.
func (x *Indexer) applyOutcome(log logr.Logger, a *execution.Attempt, began time.Time, uid types.UID) {
	key, into, outcome := accountKey{uid, a.Call.Handler.ID}, a.Call.Handler.Index.Store, a.Outcome
	if outcome.Final && outcome.Err == nil { // the failures are over
		delete(x.accounts, key)
	}
	switch {
	// An ignored error does not change the index.
	case outcome.Ignored != nil:
		log.Error(outcome.Ignored, "Index function failed; keeping the entries of the object",
			panics.StackFields(outcome.Ignored)...)
	case outcome.Err != nil:
		x.accounts[key] = afterFailure(a.Account, began, outcome)
		into.ReplaceEntries(uid, nil)
		log.Error(
			outcome.Err, "Index function failed; removing the entries of the object",
			append(panics.StackFields(outcome.Err), "permanent", outcome.Final)...,
		)
	case a.KeepEntries:
	default:
		into.ReplaceEntries(uid, a.Entries)
	}
}

// afterFailure returns the account of a handler that failed. The object stays out of the index until the next attempt.
func afterFailure(past execution.Account, began time.Time, o execution.Outcome) execution.Account {
	if past.Started.IsZero() {
		past.Started = began
	}
	past.Retries++
	past.Finished = o.Final
	if o.Delay != nil {
		past.Until = began.Add(*o.Delay)
	}
	return past
}
