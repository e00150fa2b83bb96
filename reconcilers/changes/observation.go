package changes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// storeFunc adds one form of an essence to a merge-patch.
type storeFunc func(patch, body map[string]any, form diffbase.Essence) error

// observeObject detects the cause by comparing the object with the memory on it. It reads the whole memory before any
// write: an object with malformed memory is not modified.
func (p *pass) observeObject(ctx context.Context) (*observation, error) {
	o, h := &p.object, p.handling
	o.observedBody, o.storedAnnotations = nil, nil
	// Everything below reads the object's own memory only.
	if err := o.ignoreIfDeleting(ctx, o.separateForeignMemory()); err != nil {
		return nil, &BlockedError{Err: err}
	}
	// The interim essence is checked last: its precondition refers to the records.
	seen := &observation{}
	now, beside, err := o.readEssences(ctx, seen)
	if err == nil {
		seen.state, err = o.readRecords(ctx)
	}
	if err == nil {
		err = seen.dropStaleInterim(beside)
	}
	if err != nil {
		return nil, &BlockedError{Err: err}
	}
	// No record is left, so none can be lost later.
	if len(seen.state.AllStates()) == 0 {
		p.memory.openRecords = openRecords{}
	}
	p.logMissingFields(ctx)
	// Secret and large values are stored as digests. The last-handled essence is restored from them by comparison with
	// the present one.
	then, veiled := h.Lens.Redaction.RestoreEssence(o.body, seen.lastHandled, now)
	switch handled := &p.memory.HandledState; {
	case seen.lastHandled != nil:
		handled.Hash = cause.HashEssence(then)
	case handled.Hash == 0 || o.isBound(): // never handled, or its annotations were removed on purpose
	// The memory is lost. The hash in this process still detects whether the object has changed.
	case handled.Hash == cause.HashEssence(now):
		seen.memoryLost, then = true, now
	default:
		seen.memoryLost = true
		then, veiled = h.Lens.Redaction.UnknownEssence(now)
	}
	observed := cause.Observation{
		Body: o.body, Object: o.lazyBody, Finalizer: h.Finalizer, Old: then, New: now, VeiledPaths: veiled,
		Initial: p.memory.Initial,
	}
	seen.cause = cause.Detect(observed)
	p.observeControls(ctx, seen)
	p.replaceCause(seen, observed)
	return seen, nil
}

// readEssences reads the last-handled essence and the interim one into seen. It returns the present essence and the
// precondition of the interim one. If the object is being deleted, an unreadable essence is nil.
func (o *object) readEssences(
	ctx context.Context, seen *observation,
) (now diffbase.Essence, beside *precondition, err error) {
	lens := o.handling.Lens
	now, err = o.presentEssence()
	if err = o.ignoreIfDeleting(ctx, err); err == nil {
		seen.lastHandled, err = lens.Last(o.ownBody, now)
		err = o.ignoreIfDeleting(ctx, err)
	}
	if err != nil {
		return nil, nil, err
	}
	interim, beside, err := o.handling.InterimStorage.readWithPrecondition(o.ownBody)
	interim, err = lens.ComparableEssence(interim, err)
	seen.interimEssence, _ = lens.Redaction.RestoreEssence(o.body, interim, now)
	return now, beside, o.ignoreIfDeleting(ctx, err)
}

// presentEssence returns the essence of the object, which is built once for each state.
func (o *object) presentEssence() (now diffbase.Essence, err error) {
	if o.essence == nil {
		o.essence, err = o.handling.Lens.New(o.ownBody)
	}
	return o.essence, err
}

// logMissingFields logs which fields of handlers the object cannot have, because a value on the path is not a mapping.
// It logs them once, until they change. Other handlers are not affected.
func (p *pass) logMissingFields(ctx context.Context) {
	fields := p.handling.Lens.UnreachableFields(p.object.body)
	names := make([]string, 0, len(fields))
	for _, field := range fields {
		names = append(names, field.String())
	}
	said := strings.Join(names, ", ")
	if said == p.memory.loggedMissingFields {
		return
	}
	p.memory.loggedMissingFields = said
	if said != "" {
		logging.Warn(logf.FromContext(ctx), "Object cannot have the field of a handler, as a value on its path is not "+
			"a mapping; calling the other handlers", "fields", names, "handlers", p.handlersOf(fields))
	}
}

// handlersOf returns the ids of the changing handlers that have one of the fields.
func (p *pass) handlersOf(fields []diff.Path) []string {
	ids := []string{}
	for _, h := range p.handling.Handlers {
		own := func(field diff.Path) bool { return slices.Equal(field, h.Description.Field) }
		if h.Description.Field != nil && slices.ContainsFunc(fields, own) {
			ids = append(ids, h.Description.ID)
		}
	}
	return ids
}

// storeHandled stores the essence as the last-handled one, with digests instead of values that are secret or do not
// fit.
func (o *object) storeHandled(ctx context.Context, patch *patching.Patch, handled diffbase.Essence) error {
	lens := o.handling.Lens
	size, err := o.storeFitting(patch, handled, lens.Diffbase.Store)
	large, measured := lens.Redaction.ExceedsLimit(handled)
	if measured == nil && (large || size > storage.AnnotationsLimit) {
		logging.Warn(logf.FromContext(ctx), "Object is too large to remember its last-handled state; storing a "+
			"digest: handlers will see that the object changed, but not its former values",
			"handlers", o.handling.HandlerIDs(), "annotations", size, "limit", storage.AnnotationsLimit)
	}
	return err
}

// memoryFits reports whether the memory that ends the cause fits. An object being deleted does not need its memory: if
// the memory would be refused, the finalizer is removed without it.
func (o *object) memoryFits(patch *patching.Patch, handled diffbase.Essence) bool {
	trial := patch.Clone()
	if trial.Merge == nil {
		trial.Merge = map[string]any{}
	}
	// The binding is part of the same write.
	if o.bindMemory(&trial) != nil {
		return false
	}
	if _, err := o.storeFitting(&trial, handled, o.handling.Lens.Diffbase.Store); err != nil {
		return false
	}
	return o.annotationsSize(&trial) <= storage.AnnotationsLimit
}

// storeFitting stores the first form of the essence that fits. It returns the size of the annotations with the best
// form.
func (o *object) storeFitting(patch *patching.Patch, essence diffbase.Essence, store storeFunc) (first int, err error) {
	// The forms get smaller. If none fits, the last one stays in the patch, and the API server decides.
	for form, err := range o.handling.Lens.Redaction.StoredForms(o.body, essence) {
		if err != nil {
			return first, err
		}
		if err := store(patch.Merge, o.storageBody, form); err != nil {
			return first, err
		}
		size := o.annotationsSize(patch)
		first = cmp.Or(first, size)
		if size <= storage.AnnotationsLimit {
			break
		}
	}
	return first, nil
}

// annotationsSize returns the size of the annotations after the patch.
func (o *object) annotationsSize(patch *patching.Patch) int {
	return storage.AnnotationsSize(annotationsOf(o.body), annotationsOf(patch.Merge))
}

// storeInterim stores the essence with its precondition.
func (o *object) storeInterim(patch *patching.Patch, essence diffbase.Essence, valid precondition) error {
	_, err := o.storeFitting(patch, essence, func(patch, body map[string]any, form diffbase.Essence) error {
		return o.handling.InterimStorage.storeUnder(patch, body, form, valid)
	})
	return err
}

// storeInterimBeside stores the essence that other handlers have seen, beside the last-handled one in the patch.
func (o *object) storeInterimBeside(patch *patching.Patch, essence diffbase.Essence) error {
	// The precondition needs the fingerprint in the stored form, so read back the result of the patch.
	after, err := o.applyMergePatch(patch)
	if err != nil {
		return err
	}
	lens := o.handling.Lens
	stored, err := lens.ComparableEssence(lens.Diffbase.Fetch(after))
	if err != nil {
		return err
	}
	handled, err := cause.EssenceFingerprint(stored)
	if err != nil {
		return err
	}
	return o.storeInterim(patch, essence, precondition{handledFingerprint: handled})
}

// applyMergePatch returns the object with the merge-patch, without the transformations.
func (o *object) applyMergePatch(patch *patching.Patch) (map[string]any, error) {
	merging := patching.Patch{Merge: patch.Merge}
	return merging.ApplyTo(o.storageBody)
}

// storeInterimOf stores the essence that the first successful handler saw until the cause ends. It does nothing if no
// handler has succeeded.
func (o *object) storeInterimOf(patch *patching.Patch, handled *outcomes) error {
	found, err := handled.recordedSuccess()
	if err != nil || found == nil {
		return err
	}
	fingerprint, err := cause.EssenceFingerprint(handled.observation.lastHandled)
	if err != nil {
		return err
	}
	return o.storeInterim(patch, handled.interimEssence, precondition{handledFingerprint: fingerprint, success: found})
}

// hasInterimOf reports whether the object has this interim essence for the open cause after the patch. The stored one
// can be stale or belong to no open cause, and the patch can remove the record that its precondition needs.
func (o *object) hasInterimOf(patch *patching.Patch, handled *outcomes) bool {
	stored, beside, err := o.handling.InterimStorage.readWithPrecondition(o.storageBody)
	switch {
	case err != nil || stored == nil || beside != nil && beside.success == nil:
		return false
	case beside == nil && handled.observation.interimEssence == nil: // stale before the handlers of this pass succeeded
		return false
	}
	read := func(id string) (*progress.Record, error) {
		if h := handled.state.StateOf(id); h != nil && h.Active && h.NeedsRecord() {
			record := h.AsRecord() // it is in the patch
			return &record, nil
		}
		after, err := o.applyMergePatch(patch)
		if err != nil {
			return nil, err
		}
		return o.handling.Progress.Fetch(after, id)
	}
	if valid, err := beside.isMet(handled.observation, read); err != nil || !valid {
		return false
	}
	// Compare in the restored form: the stored one can have digests.
	recalled, _ := o.handling.Lens.Redaction.RestoreEssence(o.body, stored, handled.interimEssence)
	return cause.EqualEssences(recalled, handled.interimEssence)
}

// checkMemoryKept returns an error if the API server has dropped a record or the last-handled configuration from the
// write: it silently drops fields that the CRD does not have. The object would be new forever, and its handlers would
// be called again and again. The error delays the object until a write lasts. Until then, its handlers wait.
func (p *pass) checkMemoryKept(handled *outcomes, patch map[string]any) error {
	switch {
	case p.object.gone || p.object.released:
		return nil
	// The usual case, which is faster than reading through the storage.
	case hasAllValues(p.object.body, patch):
		return nil
	// All handlers are finished: the configuration counts, and no longer the records.
	case handled.state.AllFinished():
		if p.hasEssence(patch) {
			return p.checkHasEssence()
		}
		return nil
	}
	for _, h := range handled.state.AllStates() {
		if !h.NeedsRecord() {
			continue
		}
		wanted, err := p.handling.Progress.Fetch(patch, h.ID)
		if err != nil || wanted == nil { // the record was not part of this write
			continue
		}
		if record, err := p.handling.Progress.Fetch(p.object.body, h.ID); err == nil && record == nil {
			return fmt.Errorf("progress of handler %q: %w", h.ID, errNotKept)
		}
	}
	return nil
}

// hasAllValues reports whether the object has all values that a merge-patch sets. Then the storages need not be read.
func hasAllValues(body, patch map[string]any) bool {
	for key, value := range patch {
		held := body[key]
		inner, isMapping := value.(map[string]any)
		into, wasMapping := held.(map[string]any)
		switch {
		case value == nil: // a removal: nothing can be dropped
		case isMapping && (!wasMapping || !hasAllValues(into, inner)), !isMapping && !diff.Equal(held, value):
			return false
		}
	}
	return true
}

// checkHasEssence returns an error if the object does not have a last-handled configuration.
func (p *pass) checkHasEssence() error {
	if !p.hasEssence(p.object.body) {
		return fmt.Errorf("last-handled configuration: %w", errNotKept)
	}
	return nil
}

// hasEssence reports whether the storage finds a last-handled configuration, even a malformed one.
func (p *pass) hasEssence(body map[string]any) bool {
	essence, err := p.handling.Lens.Diffbase.Fetch(body)
	return err != nil || essence != nil
}
