package events

import (
	"context"
	"errors"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

// EventHandling calls the event handlers of one resource. Workers share it, so nothing may modify it.
type EventHandling struct {
	kind.HandledKind
	// Handlers are the event handlers, in the order of registration.
	Handlers []*adapters.HandlerChain
	// Loops has the objects that the handlers change; nil disables the detection of loops.
	Loops *Loops
}

// DeliverEvents calls the handlers for each of the events of one object, in order. The logger of the context must name
// the kind. An error of a handler is logged, and stops neither other handlers nor other events. The returned patch has
// the handlers' changes to the object, except those to a deleted one.
func (h *EventHandling) DeliverEvents(ctx context.Context, waiting []RawEvent) patching.Patch {
	return h.deliverAll(ctx, waiting, nil)
}

// deliverAll is [EventHandling.DeliverEvents] with the detection of loops, unless loop is nil.
func (h *EventHandling) deliverAll(ctx context.Context, waiting []RawEvent, loop *loop) patching.Patch {
	var patch patching.Patch
	for i, e := range waiting {
		// The last event shows the newest state: only a call for it can be delayed.
		loop.beginEvent(e, i == len(waiting)-1)
		log := logging.OfObject(logf.FromContext(ctx), e.Object.ObjectKey(), e.Object.GetUID())
		ctx := logf.IntoContext(ctx, log)
		if e.Type == Deleted {
			h.handleEvent(ctx, e, loop)
			// A new object of the same name may follow: changes to the old one must not be applied to it.
			patch = patching.Patch{}
			continue
		}
		for _, a := range h.handleEvent(ctx, e, loop) {
			patch.Transforms = append(patch.Transforms, tolerantTransforms(ctx, a)...)
			if err := patch.AddResult(a.Call.Handler.ID, a.ResultToWrite()); err != nil {
				logf.FromContext(ctx).Error(
					err, "Cannot write the result of a handler; dropping it", "handler", a.Call.Handler.ID,
				)
			}
		}
	}
	return patch
}

// tolerantTransforms returns the changes of an attempt for the common patch. A change that fails on the present object
// is dropped, so that the changes of other handlers are still made.
func tolerantTransforms(ctx context.Context, a *execution.Attempt) []patching.Transform {
	all := patching.ContainPanics(a.AllTransforms())
	for i, transform := range all {
		all[i] = func(body map[string]any) error {
			if err := transform(body); err != nil {
				// The object may have changed since the call: the patch is applied to its newest state.
				logf.FromContext(ctx).Error(err, "A patch of an event handler failed on the object as it is by now; "+
					"dropping it", "handler", a.Call.Handler.ID)
			}
			return nil
		}
	}
	return all
}

// handleEvent calls the matching handlers for one event, and returns their attempts. It stops when no further call may
// begin, because the operator exits or pauses.
func (h *EventHandling) handleEvent(ctx context.Context, e RawEvent, loop *loop) (attempts []*execution.Attempt) {
	opened, err := e.Object.Open()
	// An object that cannot be decoded never can, so a retry would not help.
	if err != nil {
		logf.FromContext(ctx).Error(err, "Cannot read an object; skipping an event of it", "type", e.Type)
		return nil
	}
	c := &cause.Cause{EventType: e.Type, Object: opened, Deleting: e.Object.IsDeleting()}
	if h.IsPausedIn(opened, c.Deleting || e.Type == Deleted) {
		return nil
	}
	noted := h.Journal.ForObject(e.Object.ObjectKey(), e.Object.GetUID())
	look := noted.StartEventEvaluation(c)
	defer look.AddToJournal()
	var chosen []*adapters.HandlerChain
	for _, handler := range h.Handlers {
		if !h.MayBegin(ctx) {
			return attempts
		}
		// Two overlapping selections may have registered the same handler.
		if handler.HasTwin(chosen) {
			continue
		}
		// Matching one handler at a time keeps the error of one filter from the other handlers.
		switch matches, err := handler.MatchesCause(ctx, c, look.VerdictFunc()); {
		case err != nil:
			logf.FromContext(ctx).Error(err, "Filter of a handler failed; skipping the event for it",
				append(panics.StackFields(err), "handler", handler.Description.ID, "type", e.Type)...)
		case matches:
			chosen = append(chosen, handler)
			if loop.holdBack(e, handler.Description.ID, utcNow()) {
				continue
			}
			if a := h.callHandler(ctx, handler, c); a != nil {
				loop.recordCall(a)
				noted.RecordAttempt(a)
				attempts = append(attempts, a)
			}
		}
	}
	return attempts
}

// callHandler calls one handler for an event. It returns nil if the object cannot be decoded.
func (h *EventHandling) callHandler(
	ctx context.Context, handler *adapters.HandlerChain, c *cause.Cause,
) *execution.Attempt {
	object, err := handler.Description.DecodedObject(c)
	// The function gets the state of the event; Newest is the cache, which may be newer.
	if err != nil {
		logf.FromContext(ctx).Error(err, "Cannot read an object; skipping an event of it", "type", c.EventType)
		return nil
	}
	a := h.NewAttempt(handler.Description, c, object)
	a.Now, a.Call.Started, a.Call.LatestState = utcNow, utcNow(), h.Cache
	running, cancel := adapters.FunctionContext(ctx)
	defer cancel(nil)
	handler.RunAttempt(running, a)
	return a
}

// WriteChanges sends the handlers' changes. It logs and drops them if that fails, because event handlers are not called
// again.
func (h *EventHandling) WriteChanges(
	ctx context.Context, body map[string]any, patch patching.Patch,
) patching.WriteResult {
	if patch.IsEmpty() {
		return patching.WriteResult{}
	}
	// All handlers of one delivery share one patch, so the journal and the log name all of them.
	result, err := h.HandledKind.WritePatch(ctx, "event handlers", patching.Target{Body: body}, patch)
	if err = errors.Join(err, result.StatusRefusal); err != nil {
		logf.FromContext(ctx).Error(
			err, "Failed to write the changes of event handlers; dropping them", "handlers",
			adapters.HandlerIDs(h.Handlers),
		)
	}
	return result
}
