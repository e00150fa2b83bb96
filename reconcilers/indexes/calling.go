package indexes

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
)

// history is of a handler that failed for an object. None is of all others.
type history struct {
	started time.Time // of the first attempt that failed
	retries int
	until   time.Time // it is left out until then
	failed  bool      // for good
}

// index lets one handler speak of one object.
func (x *Indexer) index(ctx context.Context, h *handlers.Handler, c *cause.Cause, uid types.UID) {
	log := logf.FromContext(ctx).WithValues("handler", h.ID)
	matching, err := handlers.Matching(ctx, []*handlers.Handler{h}, handlers.Indexing, c)
	if err != nil {
		log.Error(err, "The object is not indexed anew", panics.Stack(err)...)
		return
	}
	past := x.accounts[account{uid, h.ID}]
	if len(matching) == 0 || past != nil && (past.failed || time.Now().Before(past.until)) {
		h.Index.Into.Remove(uid)
		return
	}
	now := time.Now()
	limits := x.limits(h, past, now)
	var entries map[any]any
	keep, err := false, limits.Exceeded()
	if err == nil {
		entries, keep, err = x.call(logf.IntoContext(ctx, log), h, c, past)
	}
	if took := time.Since(now); took > slow {
		log.Info("An index function is slow, and all events of the kind wait for it", "took", took.String())
	}
	outcome := limits.Contain(func() execution.Outcome { return limits.Judge(err) })
	if outcome.Final && outcome.Err == nil {
		delete(x.accounts, account{uid, h.ID})
	}
	switch {
	case outcome.Ignored != nil:
		log.Error(
			outcome.Ignored, "The object is not indexed anew: the function failed", panics.Stack(outcome.Ignored)...,
		)
	case outcome.Err != nil:
		x.excluded(account{uid, h.ID}, past, now, outcome)
		h.Index.Into.Remove(uid)
		log.Error(
			outcome.Err, "The object is left out of the index",
			append(panics.Stack(outcome.Err), "for good", outcome.Final)...,
		)
	case keep:
	default:
		h.Index.Into.Replace(uid, entries)
	}
}

func (x *Indexer) limits(h *handlers.Handler, past *history, now time.Time) execution.Limits {
	limits := execution.Limits{ID: h.ID, Policy: h.Policy, Mode: handlers.ErrorsIgnored, Backoff: x.backoff}
	if past != nil {
		limits.Retries, limits.Runtime = past.retries, now.Sub(past.started)
	}
	return limits
}

// excluded remembers for how long the handler is not asked about the object.
func (x *Indexer) excluded(a account, past *history, now time.Time, o execution.Outcome) {
	if past == nil {
		past = &history{started: now}
		x.accounts[a] = past
	}
	past.retries++
	past.failed = o.Final
	if o.Delay != nil {
		past.until = now.Add(*o.Delay)
	}
}

var errNoReturn = errors.New("the function ended its goroutine instead of returning")

// call makes a panic an error, and the end of the goroutine, which is the function's own: the informer must go on.
func (x *Indexer) call(
	ctx context.Context, h *handlers.Handler, c *cause.Cause, past *history,
) (entries map[any]any, keep bool, err error) {
	call := &handlers.Call{Handler: h, Cause: c, Object: runtime.DeepCopyJSON(c.Body), Started: time.Now()}
	if past != nil {
		call.Retry, call.Started = past.retries, past.started
	}
	done := make(chan struct{})
	err = errNoReturn
	go func() {
		defer close(done)
		err = panics.Contain(func() (err error) { entries, keep, err = h.Index.Call(ctx, call); return err })
	}()
	<-done
	return entries, keep, err
}
