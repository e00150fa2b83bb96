package indexes

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
)

// index lets one handler speak of one object.
func (x *Indexer) index(ctx context.Context, h *adapters.Handler, c *cause.Cause, uid types.UID) {
	log := logf.FromContext(ctx).WithValues("handler", h.Description.ID)
	past := x.accounts[account{uid, h.Description.ID}]
	x.question.Call.Cause, x.question.Account = c, past
	due, err := h.Ask(ctx, &x.question, execution.Due)
	x.question.Call.Cause = nil
	switch {
	case err != nil:
		log.Error(err, "The object is not indexed anew", panics.Stack(err)...)
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
		log.Info("An index function is slow, and all events of the kind wait for it", "took", took.String())
	}
	x.conclude(log, a, began, uid)
}

// conclude takes what the function said into the index, or leaves the object out of it.
func (x *Indexer) conclude(log logr.Logger, a *execution.Attempt, began time.Time, uid types.UID) {
	key, into, outcome := account{uid, a.Call.Handler.ID}, a.Call.Handler.Index.Into, a.Outcome
	if outcome.Final && outcome.Err == nil {
		delete(x.accounts, key)
	}
	switch {
	case outcome.Ignored != nil:
		log.Error(
			outcome.Ignored, "The object is not indexed anew: the function failed", panics.Stack(outcome.Ignored)...,
		)
	case outcome.Err != nil:
		x.accounts[key] = excluded(a.Account, began, outcome)
		into.Remove(uid)
		log.Error(
			outcome.Err, "The object is left out of the index",
			append(panics.Stack(outcome.Err), "for good", outcome.Final)...,
		)
	case a.Keep:
	default:
		into.Replace(uid, a.Entries)
	}
}

// excluded is the account of a handler that failed: it says for how long it is not asked about the object.
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
