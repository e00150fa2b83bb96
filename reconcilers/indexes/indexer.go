package indexes

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
)

// slow is from when on a call is worth a warning: all events of the kind wait for it.
const slow = 100 * time.Millisecond

const deleted = "DELETED"

// Indexer fills the indices from the events of one kind.
type Indexer struct {
	mu       sync.Mutex
	handlers []*adapters.Handler
	backoff  time.Duration
	log      logr.Logger
	listing  int                           // counts the first listings
	known    map[types.UID]int             // in which one, or after which one, an object was seen last
	accounts map[account]execution.Account // of handlers that failed
	question execution.Attempt             // that handlers are asked with
}

type account struct {
	uid     types.UID
	handler string
}

// Begin is before the first listing of a service of the kind. The handlers are those that index, in the order of
// registration; the backoff is the default delay after temporary errors, zero is 60 seconds; the logger names the kind.
func (x *Indexer) Begin(own []*adapters.Handler, backoff time.Duration, log logr.Logger) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.handlers, x.backoff, x.log, x.question.Now = own, backoff, log, time.Now
	x.listing++
}

// Listed is after it: what it does not have is gone.
func (x *Indexer) Listed() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for uid, listing := range x.known {
		if listing != x.listing {
			x.forget(uid)
		}
	}
}

// Seen brings the indices up to date with an event, on the goroutine of the informer.
func (x *Indexer) Seen(kind string, object *unstructured.Unstructured) {
	x.mu.Lock()
	defer x.mu.Unlock()
	uid := object.GetUID()
	if kind == deleted {
		x.forget(uid)
		return
	}
	if x.known == nil {
		x.known, x.accounts = map[types.UID]int{}, map[account]execution.Account{}
	}
	x.known[uid] = x.listing
	log := x.log.WithValues("namespace", object.GetNamespace(), "name", object.GetName())
	ctx := logf.IntoContext(context.Background(), log)
	c := &cause.Cause{Type: kind, Body: object.Object, Deleting: object.GetDeletionTimestamp() != nil}
	for _, h := range x.handlers {
		x.index(ctx, h, c, uid)
	}
}

func (x *Indexer) forget(uid types.UID) {
	for _, h := range x.handlers {
		h.Description.Index.Into.Remove(uid)
		delete(x.accounts, account{uid, h.Description.ID})
	}
	delete(x.known, uid)
}

// index calls one index function for one object, if it matches and is due, and updates the index.
func (x *Indexer) index(ctx context.Context, h *adapters.Handler, c *cause.Cause, uid types.UID) {
	log := logf.FromContext(ctx).WithValues("handler", h.Description.ID)
	past := x.accounts[account{uid, h.Description.ID}]
	x.question.Call.Cause, x.question.Account = c, past
	due, err := h.Ask(ctx, &x.question, execution.Due)
	x.question.Call.Cause = nil
	switch {
	case err != nil:
		log.Error(err, "Filter of an index function failed; keeping the entries of the object", panics.Stack(err)...)
		return
	case !due:
		h.Description.Index.Into.Remove(uid)
		return
	}
	a := execution.New(h.Description, c, c.Body)
	a.Account, a.Limits.Backoff = past, x.backoff
	began := time.Now()
	h.Run(logf.IntoContext(ctx, log), a)
	if took := time.Since(began); took > slow {
		log.Info("Index function is slow; all events of its resource wait for it", "took", took.String())
	}
	x.conclude(log, a, began, uid)
}

// conclude puts the entries of the function into the index, or removes the object from it.
func (x *Indexer) conclude(log logr.Logger, a *execution.Attempt, began time.Time, uid types.UID) {
	key, into, outcome := account{uid, a.Call.Handler.ID}, a.Call.Handler.Index.Into, a.Outcome
	if outcome.Final && outcome.Err == nil {
		delete(x.accounts, key)
	}
	switch {
	case outcome.Ignored != nil:
		log.Error(outcome.Ignored, "Index function failed; keeping the entries of the object",
			panics.Stack(outcome.Ignored)...)
	case outcome.Err != nil:
		x.accounts[key] = excluded(a.Account, began, outcome)
		into.Remove(uid)
		log.Error(
			outcome.Err, "Index function failed; removing the entries of the object",
			append(panics.Stack(outcome.Err), "permanent", outcome.Final)...,
		)
	case a.Keep:
	default:
		into.Replace(uid, a.Entries)
	}
}

// excluded is the account of a handler that failed: the object is left out of the index until the next attempt.
func excluded(past execution.Account, began time.Time, o execution.Outcome) execution.Account {
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
