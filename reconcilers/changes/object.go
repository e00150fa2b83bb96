package changes

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// object is the object of a pass in its newest known state.
type object struct {
	handling *ChangeHandling
	memory   *Memory

	body        map[string]any       // the newest known state: each write replaces it by the answer
	lazyBody    *jsontext.LazyObject // the same, with its text if it has one
	storageBody map[string]any       // the same as storages see it: see [ChangeHandling.withSeparateMemory]
	ownBody     map[string]any       // the same without memory that belongs to another object
	state       *execution.State     // the records that the round has found
	essence     diffbase.Essence     // the essence of own, once it is built
	foreign     map[string]any       // the merge-patch from body to own; nil if they are equal
	answer      *jsontext.LazyObject // the last answer in this pass; nil if it was the last one about the object

	observedBody      map[string]any // the body that the round has observed, if the round has written since
	storedAnnotations map[string]any // annotations that the round has stored for the engine; nil values were removed

	gone                bool        // the object does not exist any more, or was replaced under its name
	released            bool        // our write removed the last finalizer: the object is gone
	statusRefusal       error       // of the status, by the last write
	restoredFields      []diff.Path // the fields that the last write removed, and that the server put back
	hasUnreadableRecord bool        // a record could not be read

	recordsLost bool // all records are missing that our last write left
}

// refreshIfUncertain reads the object live if the answer to our last write was lost: the known state can be older.
func (o *object) refreshIfUncertain(ctx context.Context) error {
	if !o.memory.isLastWriteUncertain {
		return nil
	}
	ctx, cancel := o.handling.WriteContext(ctx)
	defer cancel()
	known := &unstructured.Unstructured{Object: o.body}
	body, err := o.handling.Writer.Get(ctx, known.GroupVersionKind(), client.ObjectKeyFromObject(known))
	switch {
	case apierrors.IsNotFound(err), err == nil && patching.ObjectUID(body) != patching.ObjectUID(o.body):
		o.gone = true
		return nil
	case err != nil:
		return err
	}
	o.memory.isLastWriteUncertain = false
	o.acceptState(jsontext.NewFromValue(body), false)
	return nil
}

// sendPatch applies the patch, again to the fresh object after conflicts, and continues with the server's answer. A
// refused status does not prevent the rest.
func (o *object) sendPatch(ctx context.Context, patch patching.Patch) error {
	return o.writePatch(ctx, patch, false)
}

// writePatch is like sendPatch. But if the status decides and is refused, the main resource is not written.
func (o *object) writePatch(ctx context.Context, patch patching.Patch, statusDecides bool) error {
	o.statusRefusal = nil
	err := o.ignoreIfDeleting(ctx, progress.Flush(o.handling.Progress))
	if err != nil || patch.IsEmpty() {
		return err
	}
	o.removeTouch(ctx, &patch)
	target := patching.Target{Body: o.body, StopIfStatusRefused: statusDecides}
	result, err := o.handling.WritePatch(ctx, "", target, patch)
	o.memory.isLastWriteUncertain = isWriteUncertain(err)
	if o.gone = result.Gone || errors.Is(err, patching.ErrReplaced); o.gone {
		return nil
	}
	o.statusRefusal, o.restoredFields = result.StatusRefusal, result.RestoredFields
	latest := newerBody(result.Fresh, result.Body)
	o.acceptState(withText(latest, result.Answer), result.Released)
	o.noteStored(annotationsOf(patch.Merge))
	return err
}

// withText returns the body with the text of the answer, if that is the same version.
func withText(body map[string]any, answer *jsontext.LazyObject) *jsontext.LazyObject {
	if answered, err := answer.Value(); err == nil && answered != nil && body != nil &&
		patching.ResourceVersion(answered) == patching.ResourceVersion(body) {
		return answer
	}
	return jsontext.NewFromValue(body)
}

// noteStored adds the annotations of a write to those of the round.
func (o *object) noteStored(annotations map[string]any) {
	if len(annotations) == 0 {
		return
	}
	all := make(map[string]any, len(o.storedAnnotations)+len(annotations))
	maps.Copy(all, o.storedAnnotations)
	maps.Copy(all, annotations)
	o.storedAnnotations = all
}

// removeTouch removes Kopf's touch annotation, by which Kopf wakes itself up: if Kopf was stopped, it stays on the
// object. This does not justify its own write, and errors do not fail the write.
func (o *object) removeTouch(ctx context.Context, patch *patching.Patch) {
	merge := map[string]any{}
	err := panics.Contain(func() error { o.handling.Progress.Touch(merge, o.body, nil); return nil })
	switch {
	case err != nil:
		if o.memory.isNew(err) {
			stack := panics.StackFields(err)
			logf.FromContext(ctx).Error(err, "Failed to remove Kopf's touch annotation", stack...)
		}
	case len(merge) > 0:
		if patch.Merge == nil {
			patch.Merge = map[string]any{}
		}
		fillMissingValues(patch.Merge, merge)
	}
}

// sendTransform sends one transformation.
func (o *object) sendTransform(ctx context.Context, transform patching.Transform) error {
	return o.sendPatch(ctx, patching.Patch{Transforms: []patching.Transform{transform}})
}

// acceptState continues with the newest state of the object, also if the write as a whole has failed.
func (o *object) acceptState(latest *jsontext.LazyObject, last bool) {
	if body, err := latest.Value(); err == nil && body != nil {
		if o.observedBody == nil {
			o.observedBody = o.body
		}
		o.body, o.lazyBody, o.answer = body, latest, latest
		_ = o.separateForeignMemory() // each round starts with it, and handles its errors
		if o.state != nil {
			o.state.ForgetRecords()
		}
	}
	if last {
		o.released, o.answer = true, nil
	}
}

// isWriteUncertain reports whether a failed write can still have been done: the server did not send a refusal.
func isWriteUncertain(err error) bool {
	var status apierrors.APIStatus
	if err == nil || patching.IsContentRefused(err) {
		return false
	}
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code < 400 || code >= 500 || code == http.StatusRequestTimeout
}

// newerBody returns the newer version of the object: after a conflict, the fresh object can already have the changes.
func newerBody(read, answered map[string]any) map[string]any {
	if read == nil || answered == nil {
		if read == nil {
			return answered
		}
		return read
	}
	if patching.IsNewerVersion(patching.ResourceVersion(read), patching.ResourceVersion(answered)) {
		return read
	}
	return answered
}

// readRecords reads the records of our handlers. If all those of our last write are lost, it uses that memory instead.
func (o *object) readRecords(ctx context.Context) (*execution.State, error) {
	h := o.handling
	read := func(id string) (*progress.Record, error) { return o.readRecord(ctx, id) }
	o.recordsLost = false
	state, err := execution.RestoreState(read, h.HandlerIDs(), nil, "", h.Now())
	if err == nil && o.hasLostRecords(state) {
		o.recordsLost = true
		state, err = execution.RestoreState(read, h.HandlerIDs(), nil, "", h.Now())
	}
	o.state = state
	return state, err
}

// readRecord reads the record of one handler, from memory if the object cannot store it.
func (o *object) readRecord(ctx context.Context, id string) (*progress.Record, error) {
	if kept, ok := o.memory.unstoredRecords[id]; ok {
		return &kept, nil
	}
	record, err := o.handling.Progress.Fetch(o.ownBody, id)
	o.hasUnreadableRecord = o.hasUnreadableRecord || err != nil && patching.IsBeingDeleted(o.body)
	if err := o.ignoreIfDeleting(ctx, err); err != nil {
		return nil, err
	}
	if kept, ok := o.memory.openRecords.byID[id]; ok && record == nil && o.recordsLost {
		return &kept, nil
	}
	return record, nil
}

// isBound reports whether the object is still bound to our memory. A client that removes all annotations but the
// binding does so on purpose, to have the object handled again. One that replaces the metadata removes the binding,
// too.
func (o *object) isBound() bool {
	return o.handling.BoundTo != "" &&
		annotationsOf(o.body)[o.handling.bindingKey(o.body)] == patching.ObjectUID(o.body)
}

// hasLostRecords reports whether all records are missing that our last write left.
func (o *object) hasLostRecords(found *execution.State) bool {
	open := o.memory.openRecords
	if len(open.byID) == 0 || open.handling != o.handling || o.isBound() {
		return false
	}
	for id := range open.byID {
		record, err := found.FetchRecord(id)
		// The state can return a record from memory, or skip a malformed one. Only the object shows whether it is lost.
		if _, held := o.memory.unstoredRecords[id]; held || record == nil && err == nil && o.hasUnreadableRecord {
			record, err = o.handling.Progress.Fetch(o.ownBody, id)
		}
		if err != nil || record != nil {
			return false
		}
	}
	return true
}

// ignoreIfDeleting returns the error of malformed memory, which ends the pass. If the object is being deleted, it logs
// the error once instead: malformed memory must not block a deletion forever.
func (o *object) ignoreIfDeleting(ctx context.Context, err error) error {
	if err == nil || !patching.IsBeingDeleted(o.body) {
		return err
	}
	if o.memory.isNew(err) {
		logf.FromContext(ctx).Error(
			err, "Ignoring malformed progress of an object that is being deleted", panics.StackFields(err)...,
		)
	}
	return nil
}

// separateForeignMemory removes from own the memory that was copied from another object together with its annotations.
func (o *object) separateForeignMemory() error {
	o.storageBody, o.ownBody, o.foreign, o.essence = o.body, o.body, nil, nil
	owner, bound := annotationsOf(o.body)[o.handling.bindingKey(o.body)].(string)
	if o.handling.BoundTo == "" || !bound || owner == patching.ObjectUID(o.body) {
		return nil
	}
	if o.handling.InterimStorage.Bound != "" && o.memory.losses != nil {
		// The copy has replaced our memory, and would do so again: store ours under different keys.
		o.storageBody = o.handling.withSeparateMemory(o.body)
		o.ownBody = o.storageBody
		return nil
	}
	merge, err := o.handling.removalOfMemory(o.body)
	patch := patching.Patch{Merge: merge}
	o.foreign = patch.Merge
	// A merge-patch alone cannot fail.
	o.ownBody, _ = patch.ApplyTo(o.body)
	return err
}

// withSeparateMemory returns a copy of the body whose memory has the kind in its keys, and so is separate from a copied
// memory. The name of the binding makes the difference.
func (h *ChangeHandling) withSeparateMemory(body map[string]any) map[string]any {
	patch := patching.Patch{Merge: map[string]any{}}
	patch.SetIn([]string{"metadata", "annotations", keys.MarkReplicaSet(body, h.BoundTo)}, nil)
	patch.SetIn([]string{"metadata", "annotations", keys.KindBoundKey(body, h.BoundTo)}, patching.ObjectUID(body))
	apart, _ := patch.ApplyTo(body) // a merge-patch alone cannot fail
	return apart
}

// bindingKey returns the key of the binding on this object. It can include the kind, as deployments repeatedly copy
// their annotations to their replica sets.
func (h *ChangeHandling) bindingKey(body map[string]any) string {
	prefix, name, _ := strings.Cut(h.BoundTo, "/")
	return keys.AnnotationKeyOn(body, prefix, h.InterimStorage.Bound, name)
}

// removalOfMemory returns a merge-patch that removes all our memory from the object. It does not remove other
// annotations under our prefix.
func (h *ChangeHandling) removalOfMemory(body map[string]any) (merge map[string]any, err error) {
	patch := patching.Patch{Merge: map[string]any{}}
	ids := h.HandlerIDs()
	for _, id := range ids {
		if record, malformed := h.Progress.Fetch(body, id); malformed == nil && record != nil {
			ids = append(ids, record.Subrefs...)
		}
	}
	err = execution.PurgeRecords(h.Progress, patch.Merge, body, ids)
	h.InterimStorage.PurgeEssence(&patch, body)
	if key := h.failuresKey(body); annotationsOf(body)[key] != nil {
		patch.SetIn([]string{"metadata", "annotations", key}, nil)
	}
	// Storages of essences cannot remove, but a trial write shows where they store.
	places := patching.Patch{Merge: map[string]any{}}
	if err := h.Lens.Diffbase.Store(places.Merge, body, diffbase.Essence{}); err == nil {
		addRemoval(&patch, nil, places.Merge, body)
	}
	return patch.Merge, err
}

// addRemoval adds the removal of the given places to the patch.
func addRemoval(patch *patching.Patch, at []string, places, body map[string]any) {
	for key, place := range places {
		path := append(at[:len(at):len(at)], key)
		held, ok := body[key]
		inner, isMapping := place.(map[string]any)
		into, wasMapping := held.(map[string]any)
		switch {
		case isMapping && wasMapping:
			addRemoval(patch, path, inner, into)
		case ok && !isMapping:
			patch.SetIn(path, nil)
		}
	}
}

// fillMissingValues adds the values of another merge-patch for paths that the first one does not set.
func fillMissingValues(patch, other map[string]any) {
	for key, value := range other {
		held, ok := patch[key]
		inner, isMapping := value.(map[string]any)
		into, wasMapping := held.(map[string]any)
		switch {
		case isMapping && !ok:
			into = map[string]any{}
			patch[key] = into
			fillMissingValues(into, inner)
		case isMapping && wasMapping:
			fillMissingValues(into, inner)
		case !ok:
			patch[key] = value
		}
	}
}

// setAnnotation adds an annotation to the patch; nil removes it.
func (o *object) setAnnotation(patch *patching.Patch, key string, value any) {
	patch.SetIn([]string{"metadata", "annotations", key}, value)
}
