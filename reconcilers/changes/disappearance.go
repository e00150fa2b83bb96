package changes

import (
	"context"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/controls"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

// noteReleased notes that the deletion of an object was handled while other finalizers still hold it. The object was
// handled before and its handlers need the finalizer, so it had ours, and this process or a former one has removed it.
func (p *pass) noteReleased(seen *observation, wanted interest) {
	p.result.DeletionHandled = p.result.DeletionHandled || seen.cause.Reason == cause.Free && wanted.needsFinalizer &&
		seen.lastHandled != nil
}

// HandleDisappearance calls the optional deletion handlers for an object that does not exist any more, and whose
// deletion was not handled. Each is called once with the last known state. Nothing is written: changes to the object
// are dropped.
func (h *ChangeHandling) HandleDisappearance(ctx context.Context, last *jsontext.LazyObject) {
	body, err := last.Value()
	if err != nil {
		logf.FromContext(ctx).Error(
			err, "Cannot decode an object that has disappeared; not calling its optional deletion handlers",
		)
		return
	}
	c, handled := h.disappearanceCause(ctx, body, last)
	if pause, _ := h.PauseOf(body); handled || pause == controls.PausedDeletion {
		return
	}
	// Record the call decisions in the journal together, after the handlers have run.
	noted := h.Journal.ForBody(body)
	look := noted.StartEvaluation(c)
	defer look.AddToJournal()
	var called []*adapters.HandlerChain
	// Each handler is called once, in the order of registration.
	for _, one := range h.Handlers {
		if !one.Description.SeesDisappearance() || one.HasTwin(called) || !h.MayBegin(ctx) {
			continue
		}
		if handler := one.ForDisappeared(ctx, c, look.VerdictFunc()); handler != nil {
			called = append(called, one)
			noted.RecordAttempt(h.callOnce(ctx, handler, c, body))
		}
	}
}

// disappearanceCause returns the cause for the handlers, and reports whether a former process has handled the deletion.
// Malformed progress of the object is ignored.
func (h *ChangeHandling) disappearanceCause(
	ctx context.Context, body map[string]any, last *jsontext.LazyObject,
) (c *cause.Cause, handled bool) {
	// The pass only observes, so an empty memory is enough.
	p := &pass{handling: h, memory: &Memory{}}
	p.object = object{handling: h, memory: p.memory, body: body, lazyBody: last}
	c = cause.Detect(cause.Observation{Body: body, Object: last, Gone: true})
	seen, err := p.observeObject(ctx)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Ignoring malformed progress of an object that has disappeared")
	} else {
		c, handled = seen.cause, p.wasReleased(ctx, seen)
	}
	// The detected cause says that the object is gone; handlers see a deletion.
	c.Reason, c.Gone, c.Deleting = cause.Delete, true, true
	return c, handled
}

// wasReleased applies the rule of [pass.noteReleased] to an object that has disappeared before a pass could do so, for
// example after a restart.
func (p *pass) wasReleased(ctx context.Context, seen *observation) bool {
	if seen.cause.Reason != cause.Free {
		return false
	}
	// A handler whose filter fails does not keep an object that is being deleted, so errors are ignored.
	wanted, _ := p.attendBackground(ctx, seen.cause)
	found, _ := p.handling.interestIn(ctx, seen.cause, nil)
	wanted.needsFinalizer = wanted.needsFinalizer || found.NeedsFinalizer || p.hasDependents()
	p.noteReleased(seen, wanted)
	return p.result.DeletionHandled
}

// callOnce makes the only attempt of a handler.
func (h *ChangeHandling) callOnce(
	ctx context.Context, handler *adapters.HandlerChain, c *cause.Cause, body map[string]any,
) *execution.Attempt {
	// An encoded object is only decoded for functions that need it.
	given := body
	if c.Object.IsEncoded() {
		given = nil
	}
	a := h.NewAttempt(handler.Description, c, given)
	a.Call.EncodedObject, a.Due, a.Now = c.Object, true, h.Now
	running, cancel := adapters.FunctionContext(ctx)
	defer cancel(nil)
	handler.RunAttempt(running, a)
	// No object is left that could request or record a retry.
	if !a.Outcome.Final {
		logging.Warn(logf.FromContext(ctx), "Handler is not called again, as its object does not exist any more",
			"handler", handler.Description.ID)
	}
	return a
}
