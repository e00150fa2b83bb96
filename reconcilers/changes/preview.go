package changes

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/internal/storages"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// Preview holds the decisions of the first pass over an object, before its first call of a handler.
type Preview struct {
	// Evaluation has the cause and the decision about each handler. Without a journal for the kind, it is empty.
	Evaluation journal.Evaluation
	// Cause is the last cause that the pass found; nil after an error.
	Cause *cause.Cause
	// Handlers are the selected handlers, each once, in the order of registration.
	Handlers []HandlerPreview
}

// HandlerPreview is a selected handler and its progress for the cause.
type HandlerPreview struct {
	Handler *handlers.Handler
	// Attempts is the number of earlier attempts.
	Attempts int
	// Called is true if the pass would call the handler, and Finished if the handler has already succeeded or failed
	// permanently. Otherwise it waits.
	Called, Finished bool
}

// Preview makes the first pass of a process over the object, up to the first call of a handler. Filters are called, and
// handlers are not. Writes are applied to a copy of the object only. If the pass would end a change without a call, the
// preview continues with the change that follows. Initial is true for an object that resume handlers are called for.
func (h *ChangeHandling) Preview(ctx context.Context, newest *jsontext.LazyObject, initial bool) (Preview, error) {
	body, err := newest.Value()
	if err != nil {
		return Preview{}, err
	}
	dry := *h
	dry.Writer, dry.Dependents = previewWriter{}, withoutRelease(h.Dependents)
	dry.Progress, dry.Lens = previewProgress(h.Progress), previewLens(h.Lens)
	memory := &Memory{Initial: initial}
	p := &pass{
		handling: &dry, memory: memory, preview: &Preview{},
		object: object{handling: &dry, memory: memory, body: body, lazyBody: newest},
	}
	for range maxRounds {
		verdict, err := p.runRound(ctx)
		if err != nil {
			return Preview{Evaluation: p.draft.CurrentEvaluation()}, err
		}
		if verdict != restartPass && !p.endsUnseenChange() || p.object.gone || p.object.released {
			break
		}
	}
	p.preview.Evaluation = p.draft.CurrentEvaluation()
	return *p.preview, nil
}

// endsUnseenChange reports whether the round has ended a change whose handlers had all finished before. Its own write
// then causes the next pass.
func (p *pass) endsUnseenChange() bool {
	handled := p.outcomes
	return handled != nil && !p.handling.isReadOnly() && !handled.cause.Deleting && handled.canClose() &&
		len(p.preview.Handlers) > 0
}

// noteSelected records the selected handlers and those that would be called.
func (v *Preview) noteSelected(
	c *cause.Cause, selected []*adapters.HandlerChain, state *execution.State, picked []*execution.HandlerState,
) {
	v.Handlers = make([]HandlerPreview, 0, len(selected))
	v.Cause = c
	for _, h := range selected {
		one := state.StateOf(h.Description.ID)
		is := func(other HandlerPreview) bool { return other.Handler.ID == h.Description.ID }
		if slices.ContainsFunc(v.Handlers, is) {
			continue // several registrations of one function share a state
		}
		v.Handlers = append(v.Handlers, HandlerPreview{
			Handler: h.Description, Attempts: one.Retries, Finished: one.IsFinished(),
			Called: slices.Contains(picked, one),
		})
	}
}

// previewWriter applies patches to a copy, and sends nothing.
type previewWriter struct{}

var _ kind.Writer = previewWriter{}

var errPreview = errors.New("a preview does not read the object again")

// Get returns an error: only a conflict makes a pass read its object again.
func (previewWriter) Get(context.Context, schema.GroupVersionKind, client.ObjectKey) (map[string]any, error) {
	return nil, errPreview
}

// ApplyRetrying returns the object as the patch would leave it.
func (previewWriter) ApplyRetrying(
	_ context.Context, target patching.Target, patch patching.Patch,
) (patching.WriteResult, error) {
	after, err := patch.ApplyTo(target.Body)
	if err != nil {
		return patching.WriteResult{}, err
	}
	return patching.WriteResult{Body: after, Answer: jsontext.NewFromValue(after)}, nil
}

// heldDependents are dependents that are never released.
type heldDependents struct{ Dependents }

// Release does nothing.
func (heldDependents) Release(context.Context, map[string]any) error { return nil }

// withoutRelease returns the dependents without their release; nil if there are none.
func withoutRelease(all Dependents) Dependents {
	if all == nil {
		return nil
	}
	return heldDependents{all}
}

// readOnlyProgress and readOnlyDiffbase store nothing: a storage of the project can write to a database.
type (
	readOnlyProgress struct{ progress.Reader }
	readOnlyDiffbase struct{ diffbase.Storage }
)

// Store does nothing.
func (readOnlyProgress) Store(_, _ map[string]any, _ string, _ progress.Record) error { return nil }

// Purge does nothing.
func (readOnlyProgress) Purge(_, _ map[string]any, _ string) {}

// Touch does nothing.
func (readOnlyProgress) Touch(_, _ map[string]any, _ *string) {}

// Store does nothing.
func (readOnlyDiffbase) Store(_, _ map[string]any, _ diffbase.Essence) error { return nil }

// previewProgress returns the storage for a preview. Only the storages of this module store on the object alone.
func previewProgress(kept progress.Storage) progress.Storage {
	switch storages.WithoutFormerIDs(kept).(type) {
	case progress.Annotations, progress.Status, progress.Smart:
		return kept
	}
	return readOnlyProgress{kept}
}

// previewLens returns the lens for a preview, whose storage does not write elsewhere than to the object.
func previewLens(lens *cause.Lens) *cause.Lens {
	switch lens.Diffbase.(type) {
	case diffbase.Annotations, diffbase.Status:
		return lens
	}
	dry := *lens
	dry.Diffbase = readOnlyDiffbase{lens.Diffbase}
	return &dry
}

// isReadOnly reports whether the storages of a preview store nothing, so that no change can be ended.
func (h *ChangeHandling) isReadOnly() bool {
	_, records := h.Progress.(readOnlyProgress)
	_, essences := h.Lens.Diffbase.(readOnlyDiffbase)
	return records || essences
}
