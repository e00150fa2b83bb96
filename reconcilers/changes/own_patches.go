package changes

import (
	"context"
	"slices"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// These texts explain states of an object that Kopf does not notice. With our own formats, they are noticed.
const (
	unnoticedReturn = "The handlers' own patches took the object out of all filters, and Kopf remembers the state " +
		"that they saw before: if the object becomes the same again, no handler is called; a handler without " +
		"filters, or OnField with NewValue instead, is"
	unnoticedField = "Kopf does not remember an object without the field of OnUpdate with InField: the object is " +
		"created, not updated, when the field comes, and no handler is called; OnField is called"
)

// withOwnPatches returns the essence to store as last handled. If the handlers' own patches take the object out of all
// filters, the essence includes them: no handler is called until another client changes the object back, and that
// change would otherwise equal the state that the handlers saw. Kopf always stores that state.
func (p *pass) withOwnPatches(ctx context.Context, handled *outcomes, last diffbase.Essence) diffbase.Essence {
	h, c := p.handling, handled.cause
	handled.leavesFilters = false
	// With Kopf's formats, an object without the field is not remembered.
	if h.KopfTexts && c.IsCreated() && !handled.called && slices.ContainsFunc(h.Handlers, isUpdateOfField) {
		p.recordUnnoticed(c, unnoticedField)
	}
	// Without relevant own patches, the object cannot leave the filters.
	if handled.workingCopy == nil || h.isAlike(c.Body(), handled.workingCopy, nil) {
		return last
	}
	left, err := h.Lens.New(handled.workingCopy)
	if err != nil || cause.EqualEssences(left, c.New) {
		return last
	}
	// Simulate the update that the patches will cause, to find out whether any handler matches it.
	next := cause.Detect(cause.Observation{
		Body: handled.workingCopy, Finalizer: h.Finalizer, Old: c.New, New: left, VeiledPaths: c.VeiledPaths,
	})
	wanted, err := h.interestIn(ctx, next, nil)
	switch {
	case err != nil || wanted.HasChangeHandler: // the patches follow as an update
		return last
	case h.KopfTexts:
		p.recordUnnoticed(c, unnoticedReturn)
		return last
	default:
		handled.leavesFilters = true
		return left
	}
}

// takeBackOwnPatches stores the state that the handlers saw as last handled, if the API server did not keep the patches
// that would take the object out of all filters: a webhook can revert them, or the status can be refused. Otherwise,
// each later event would be an update.
func (p *pass) takeBackOwnPatches(ctx context.Context, handled *outcomes) error {
	h, c := p.handling, handled.cause
	now, err := p.object.presentEssence()
	if err != nil || cause.EqualEssences(now, handled.essenceToStore) {
		return nil //nolint:nilerr // the next pass reports an object that cannot be read
	}
	wanted, err := h.interestIn(ctx, cause.Detect(cause.Observation{
		Body: p.object.body, Finalizer: h.Finalizer, Old: handled.essenceToStore, New: now, VeiledPaths: c.VeiledPaths,
	}), nil)
	if err != nil || !wanted.HasChangeHandler {
		return nil //nolint:nilerr // a filter that fails is reported by the next pass
	}
	handled.leavesFilters, handled.essenceToStore = false, c.New
	patch := patching.Patch{Merge: map[string]any{}}
	if err := p.object.storeHandled(ctx, &patch, c.New); err != nil {
		return err
	}
	return p.object.sendPatch(ctx, patch)
}

// isUpdateOfField reports whether the handler is an update handler with a field.
func isUpdateOfField(h *adapters.HandlerChain) bool {
	return h.Description.Reason == cause.Update && h.Description.Field != nil
}

// recordUnnoticed records in the journal that a later state of the object will not be noticed.
func (p *pass) recordUnnoticed(c *cause.Cause, what string) {
	look := p.journalEntry().StartEvaluation(c)
	look.NoteUnnoticed(what)
	look.AddToJournal()
}

// logRestored logs once per handler that its patch had no effect: a zero value that omitempty leaves out removes the
// field, and the default of the schema restores it. It does not remember the fields: their paths contain keys of maps,
// which users choose without a limit. It does not remember sub-handlers either, as objects can choose their ids: all of
// them share the line of their handler.
func (p *pass) logRestored(ctx context.Context, attempts []*execution.Attempt) {
	if p.handling.IneffectivePatchLabels == nil {
		return
	}
	var ids, fields []string
	for _, a := range attempts {
		// Attempts without changes cannot have removed fields.
		if len(a.UnwrittenTransforms()) == 0 {
			continue
		}
		if _, isLogged := p.handling.IneffectivePatchLabels.LoadOrStore(a.Call.Handler.MetricsLabel(),
			true); !isLogged {
			ids = append(ids, a.Call.Handler.ID)
		}
	}
	if len(ids) == 0 {
		return
	}
	for _, path := range p.object.restoredFields {
		fields = append(fields, path.String())
	}
	logging.Warn(logf.FromContext(ctx), "A patch had no effect: it removes fields, and the defaults of the schema put "+
		"them back. To set a field to its zero value, its Go field must not have omitempty, or must be a pointer; "+
		"logged once", "handlers", ids, "fields", fields)
}
