package facadetest

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/utils/ptr"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// The state that an operator keeps is stored on the object, as in a cluster. Annotations are enough: the kit never
// reads the state of another operator, so it does not need the former format (Kopf: v1).
var (
	diffbaseStorage = diffbase.Annotations{Prefix: operatorName, WithoutV1: true}
	progressStorage = progress.Annotations{Prefix: operatorName, WithoutV1: true}
)

// lensOf returns the lens with which an operator with this handler compares objects. A field of the handler that does
// not belong to the essence, such as one in the status, must be compared in addition.
func lensOf(h *handlers.Handler) *cause.Lens {
	lens := &cause.Lens{Diffbase: diffbaseStorage, Progress: progressStorage}
	if field := h.EssenceField(); field != nil {
		lens.ExtraPaths = []diff.Path{field}
	}
	return lens
}

// resolveReason returns the reason for which the handler is called. [Reason] takes precedence; otherwise the object and
// the other options decide. It panics if the options contradict each other.
func (t *trial[T]) resolveReason() kopf.Reason {
	w := t.options
	// An operator only finds an update if a last-handled configuration exists.
	known := w.isGiven(optOld) || w.isGiven(optField) && w.reason != kopf.ReasonCreate
	switch {
	case w.reason == kopf.ReasonUpdate && !known:
		panicMisuse("%s: an update needs the former object: pass Old or Field", t.constructor)
	case w.reason == kopf.ReasonCreate && (w.isGiven(optOld) || w.before != nil):
		panicMisuse("%s: there is nothing old in a creation: leave out Old and the value before in Field, or Reason",
			t.constructor)
	case w.reason != "":
	case t.isDeleting():
		return kopf.ReasonDelete
	case known:
		return kopf.ReasonUpdate
	default:
		return kopf.ReasonCreate
	}
	return w.reason
}

// isDeleting reports whether the test has passed an object with a deletionTimestamp.
func (t *trial[T]) isDeleting() bool { return patching.IsBeingDeleted(t.subject.body) }

// applyField sets the field of the [Field] option in the object of the test to its new value.
func (t *trial[T]) applyField() {
	w := t.options
	if !w.isGiven(optField) {
		return
	}
	path, err := codec.ParsePath(w.field)
	if err == nil {
		err = t.subject.codec.CheckField(path)
	}
	if err != nil {
		panicMisuse("%s: Field: %v", t.constructor, err)
	}
	t.subject.body = t.withFieldValue(t.subject.body, path, w.after)
}

// withFieldValue returns the object with the value in the field; a nil value removes the field. It panics if the value
// does not fit the Go type.
func (t *trial[T]) withFieldValue(object map[string]any, path diff.Path, value any) map[string]any {
	var into patching.Patch
	into.SetIn(path, value)
	after, err := into.ApplyTo(object)
	if err == nil {
		_, err = t.subject.codec.Decode(after)
	}
	if err != nil {
		panicMisuse("%s: Field(%q): the value %v: %v", t.constructor, t.options.field, value, err)
	}
	return after
}

// seedCluster creates the cluster with the object and the operator's stored state: the last-handled configuration, the
// record of the handler, and for a deletion, the finalizers.
func (t *trial[T]) seedCluster(h *handlers.Handler, reason kopf.Reason) {
	body := t.subject.bodyAsStored()
	metadata, _ := body["metadata"].(map[string]any)
	if reason == kopf.ReasonDelete {
		// Without the second finalizer, the object would disappear when the operator removes its own, and the test
		// could not see the last writes.
		finalizers, _ := metadata["finalizers"].([]any)
		metadata["finalizers"] = append(append([]any{}, finalizers...), finalizer, keepFinalizer)
		if !t.isDeleting() {
			metadata["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
		}
	}
	patch := patching.Patch{Merge: map[string]any{}}
	err := t.addOperatorState(&patch, h, reason, body)
	if err == nil {
		body, err = patch.ApplyTo(body)
	}
	if err != nil {
		panicMisuse("%s: preparing the object: %v", t.constructor, err)
	}
	t.cluster = newCluster(t.subject.servedResource(), body)
}

// addOperatorState adds the last-handled configuration and the record of previous attempts to the patch. An object that
// is being created has no last-handled configuration.
func (t *trial[T]) addOperatorState(
	patch *patching.Patch, h *handlers.Handler, reason kopf.Reason, body map[string]any,
) error {
	w := t.options
	if reason != kopf.ReasonCreate {
		essence, err := lensOf(h).New(t.lastHandledBody(body))
		if err != nil {
			return fmt.Errorf("reading Old: %w", err)
		}
		if err := diffbaseStorage.Store(patch.Merge, body, essence); err != nil {
			return err
		}
	}
	if w.retry == 0 && w.started.IsZero() {
		return nil
	}
	started := w.started
	if started.IsZero() {
		started = time.Now()
	}
	// With another purpose, the engine would move the record to the present reason first, and clear its success or
	// failure.
	return progressStorage.Store(patch.Merge, body, h.ID, progress.Record{
		Started: ptr.To(started.UTC()), Retries: ptr.To(int64(w.retry)), Purpose: ptr.To(string(reason)),
		Success: ptr.To(false), Failure: ptr.To(false),
	})
}

// lastHandledBody returns the object as it was last handled. By default it equals the object itself, but for the field
// of [Field].
func (t *trial[T]) lastHandledBody(body map[string]any) map[string]any {
	w, old := t.options, body
	if w.isGiven(optOld) {
		old = t.encodeOld()
	}
	if !w.isGiven(optField) {
		return old
	}
	path, err := codec.ParsePath(w.field)
	if err != nil {
		panicMisuse("%s: Field: %v", t.constructor, err)
	}
	return t.withFieldValue(old, path, w.before)
}

// encodeOld returns the object of the [Old] option as JSON values. It panics if its type differs from that of the
// object.
func (t *trial[T]) encodeOld() map[string]any {
	old, ok := t.options.old.(T)
	if !ok {
		var wanted T
		panicMisuse("%s: Old is a %T, and the object is a %T: give both one type", t.constructor, t.options.old, wanted)
	}
	if reflect.ValueOf(old).IsNil() {
		panicMisuse("%s: Old is nil: leave it out", t.constructor)
	}
	body := t.subject.encodeObject(t.constructor+": Old", old)
	body["apiVersion"], body["kind"] = t.subject.kind.ToAPIVersionAndKind()
	return body
}

// detectReason returns the reason that an operator detects for the stored object. A test can request another reason
// than the engine finds; the handler is not called then.
func (t *trial[T]) detectReason(h *handlers.Handler) kopf.Reason {
	body, lens := t.cluster.storedBody(), lensOf(h)
	now, err := lens.New(body)
	then, failed := lens.ComparableEssence(lens.Diffbase.Fetch(body))
	if err = errors.Join(err, failed); err != nil {
		panicMisuse("%s: comparing the object with the last-handled configuration: %v", t.constructor, err)
	}
	return kopf.Reason(cause.Detect(cause.Observation{Body: body, Finalizer: finalizer, Old: then, New: now}).Reason)
}
