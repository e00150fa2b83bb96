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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// object is the object of a pass as the API server has it, by all that is known.
type object struct {
	handling *Handling
	memory   *Memory

	body    map[string]any   // as last known: replaced by the answer to each write
	opened  *jsontext.Object // the same, with its text if it has one
	kept    map[string]any   // the same as storages get it: see keepApart
	own     map[string]any   // the same without memory that belongs to another object
	found   *execution.State // the records, as the round has found them
	present diffbase.Essence // of own, once it is built
	foreign map[string]any   // the merge-patch that leads from body to own; nil if there is no difference
	answer  *jsontext.Object // the last answer to a request of this pass; nil if it is the last word on the object

	looked map[string]any // the body that the round has looked at, if it has written since
	stored map[string]any // the annotations that it has written for its own sake, nil for those that it has removed

	gone     bool        // the object does not exist any more, or is another one under the same name
	released bool        // our write removed the last finalizer, so the object is gone
	refusal  error       // of the status, by the last write
	restored []diff.Path // fields that the last write was to remove
	misread  bool        // a record could not be read

	recordsLost bool // no record is on the object, though our last write has left some there
}

// refreshIfUncertain gets the object live if the answer to our last write was lost: what we have may be older than what
// we did.
func (o *object) refreshIfUncertain(ctx context.Context) error {
	if !o.memory.uncertain {
		return nil
	}
	ctx, cancel := o.handling.Timeout(ctx)
	defer cancel()
	body, err := o.get(ctx, o.body)
	switch {
	case apierrors.IsNotFound(err), err == nil && patching.UIDOf(body) != patching.UIDOf(o.body):
		o.gone = true
		return nil
	case err != nil:
		return err
	}
	o.memory.uncertain = false
	o.accept(jsontext.Of(body), false)
	return nil
}

func (o *object) get(ctx context.Context, body map[string]any) (map[string]any, error) {
	known := &unstructured.Unstructured{Object: body}
	return o.handling.Writer.Get(ctx, known.GroupVersionKind(), client.ObjectKeyFromObject(known))
}

// send applies the patch, re-applies it to the fresh object after conflicts, and goes on from the server's answer. A
// refused status does not hold back the rest.
func (o *object) send(ctx context.Context, patch patching.Patch) error {
	return o.write(ctx, patch, false)
}

// write is send, or, if the status decides, writes nothing to the main resource once the status is refused.
func (o *object) write(ctx context.Context, patch patching.Patch, statusDecides bool) error {
	o.refusal = nil
	err := o.tolerate(ctx, progress.Flush(o.handling.Progress))
	if err != nil || patch.Empty() {
		return err
	}
	o.untouch(ctx, &patch)
	seen := o.body
	var fresh map[string]any
	refetch := func(ctx context.Context) (map[string]any, error) {
		body, err := o.get(ctx, seen)
		if err == nil && patching.UIDOf(body) == patching.UIDOf(seen) {
			fresh = body
		}
		return body, err
	}
	target := patching.Target{Body: seen, Opened: o.opened, StatusDecides: statusDecides}
	result, err := o.handling.Write(ctx, "", target, patch, refetch)
	o.memory.uncertain = uncertain(err)
	if o.gone = result.Gone || errors.Is(err, patching.ErrReplaced); o.gone {
		return nil
	}
	o.refusal, o.restored = result.StatusRefused, result.Restored
	latest := newest(fresh, result.Body)
	o.accept(withText(latest, result.Answer), result.Released)
	o.noteStored(annotationsOf(patch.Merge))
	return err
}

// withText is the body with the text of an answer, if that is the same state.
func withText(body map[string]any, answer *jsontext.Object) *jsontext.Object {
	if answered, err := answer.Value(); err == nil && answered != nil && body != nil &&
		patching.VersionOf(answered) == patching.VersionOf(body) {
		return answer
	}
	return jsontext.Of(body)
}

// noteStored keeps what a write has set, for as long as the round lasts.
func (o *object) noteStored(annotations map[string]any) {
	if len(annotations) == 0 {
		return
	}
	all := make(map[string]any, len(o.stored)+len(annotations))
	maps.Copy(all, o.stored)
	maps.Copy(all, annotations)
	o.stored = all
}

// untouch removes the value by which Kopf wakes itself up: if it was stopped just then, nobody else does. That is worth
// no write of its own, and if a storage cannot do it, the write goes on without.
func (o *object) untouch(ctx context.Context, patch *patching.Patch) {
	merge := map[string]any{}
	err := panics.Contain(func() error { o.handling.Progress.Touch(merge, o.body, nil); return nil })
	switch {
	case err != nil:
		if o.memory.isNew(err) {
			stack := panics.Stack(err)
			logf.FromContext(ctx).Error(err, "Failed to remove what Kopf has touched the object with", stack...)
		}
	case len(merge) > 0:
		if patch.Merge == nil {
			patch.Merge = map[string]any{}
		}
		fillIn(patch.Merge, merge)
	}
}

func (o *object) transform(ctx context.Context, transform patching.Transform) error {
	return o.send(ctx, patching.Patch{Transforms: []patching.Transform{transform}})
}

// accept goes on from what is now known of the object, even if the write as a whole has failed.
func (o *object) accept(latest *jsontext.Object, last bool) {
	if body, err := latest.Value(); err == nil && body != nil {
		if o.looked == nil {
			o.looked = o.body
		}
		o.body, o.opened, o.answer = body, latest, latest
		_ = o.separateForeignMemory() // every round begins with it, and sees to its errors
		if o.found != nil {
			o.found.ReadAgain()
		}
	}
	if last {
		o.released, o.answer = true, nil
	}
}

// uncertain tells whether the write may have been done in spite of the error: the server did not say that it refuses.
func uncertain(err error) bool {
	var status apierrors.APIStatus
	if err == nil || patching.ContentRefused(err) {
		return false
	}
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code < 400 || code >= 500 || code == http.StatusRequestTimeout
}

// newest is the later of two versions of the object: after a conflict there may be nothing left to write.
func newest(read, answered map[string]any) map[string]any {
	if read == nil || answered == nil {
		if read == nil {
			return answered
		}
		return read
	}
	if patching.Newer(patching.VersionOf(read), patching.VersionOf(answered)) {
		return read
	}
	return answered
}

func annotationsOf(body map[string]any) map[string]any {
	metadata, _ := body["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations
}

// records reads those of our handlers. If none of those is there that our last write has left, they are these.
func (o *object) records(ctx context.Context) (*execution.State, error) {
	h := o.handling
	read := func(id string) (*progress.Record, error) { return o.record(ctx, id) }
	o.recordsLost = false
	state, err := execution.Restore(read, h.IDs(), nil, "", h.Now())
	if err == nil && o.hasLostRecords(state) {
		o.recordsLost = true
		state, err = execution.Restore(read, h.IDs(), nil, "", h.Now())
	}
	o.found = state
	return state, err
}

// record reads the record of one handler.
func (o *object) record(ctx context.Context, id string) (*progress.Record, error) {
	if kept, ok := o.memory.records[id]; ok {
		return &kept, nil
	}
	record, err := o.handling.Progress.Fetch(o.own, id)
	o.misread = o.misread || err != nil && patching.BeingDeleted(o.body)
	if err := o.tolerate(ctx, err); err != nil {
		return nil, err
	}
	if kept, ok := o.memory.open.byID[id]; ok && record == nil && o.recordsLost {
		return &kept, nil
	}
	return record, nil
}

// isBound reports whether the object still has our memory's binding to it. Whoever removes annotations but for that one
// does so deliberately, such as to have the object handled again; whoever replaces the metadata removes them all.
func (o *object) isBound() bool {
	return o.handling.BoundTo != "" && annotationsOf(o.body)[o.handling.boundTo(o.body)] == patching.UIDOf(o.body)
}

// hasLostRecords reports whether none of the records is there that our last write has left.
func (o *object) hasLostRecords(found *execution.State) bool {
	open := o.memory.open
	if len(open.byID) == 0 || open.of != o.handling || o.isBound() {
		return false
	}
	for id := range open.byID {
		record, err := found.Fetch(id)
		// The state can return a record from memory, or skip a malformed one. Only the object shows whether it is lost.
		if _, isInMemory := o.memory.records[id]; isInMemory || record == nil && err == nil && o.misread {
			record, err = o.handling.Progress.Fetch(o.own, id)
		}
		if err != nil || record != nil {
			return false
		}
	}
	return true
}

// tolerate gives the error of malformed memory, which ends the pass; unless the object is being deleted: nothing may
// hold up a deletion for ever. Then the error is logged, once: there may be any number of passes.
func (o *object) tolerate(ctx context.Context, err error) error {
	if err == nil || !patching.BeingDeleted(o.body) {
		return err
	}
	if o.memory.isNew(err) {
		logf.FromContext(ctx).Error(
			err, "Ignoring malformed progress of an object that is being deleted", panics.Stack(err)...,
		)
	}
	return nil
}

// separateForeignMemory leaves out of own what was copied from another object together with its annotations.
func (o *object) separateForeignMemory() error {
	o.kept, o.own, o.foreign, o.present = o.body, o.body, nil, nil
	owner, bound := annotationsOf(o.body)[o.handling.boundTo(o.body)].(string)
	if o.handling.BoundTo == "" || !bound || owner == patching.UIDOf(o.body) {
		return nil
	}
	if o.handling.Interim.annotations.Bound != "" && o.memory.losses != nil {
		// The copy has replaced our memory. It would do so again: what we write is kept apart from it.
		o.kept = o.handling.keepApart(o.body)
		o.own = o.kept
		return nil
	}
	merge, err := o.handling.removalOfMemory(o.body)
	patch := patching.Patch{Merge: merge}
	o.foreign = patch.Merge
	// A merge-patch alone cannot fail.
	o.own, _ = patch.ApplyTo(o.body)
	return err
}

// keepApart returns the body as that of an object which keeps its memory apart from a copy of another object's, under
// keys with its kind: the binding alone decides that. The body itself is not changed.
func (h *Handling) keepApart(body map[string]any) map[string]any {
	patch := patching.Patch{Merge: map[string]any{}}
	patch.SetIn([]string{"metadata", "annotations", keys.Mark(body, h.BoundTo)}, nil)
	patch.SetIn([]string{"metadata", "annotations", keys.KindBound(body, h.BoundTo)}, patching.UIDOf(body))
	apart, _ := patch.ApplyTo(body) // a merge-patch alone cannot fail
	return apart
}

// boundTo is the annotation as it is on this object: a deployment's one is copied to its replica sets over and over.
func (h *Handling) boundTo(body map[string]any) string {
	prefix, name, _ := strings.Cut(h.BoundTo, "/")
	return keys.V2(prefix, keys.MarkBound(body, h.Interim.annotations.Bound, name))
}

// removalOfMemory is a merge-patch that removes all that we remember on the object. Annotations of users under our
// prefix are not among it.
func (h *Handling) removalOfMemory(body map[string]any) (merge map[string]any, err error) {
	patch := patching.Patch{Merge: map[string]any{}}
	for _, id := range h.IDs() {
		if record, malformed := h.Progress.Fetch(body, id); malformed == nil && record != nil {
			for _, sub := range record.Subrefs {
				err = errors.Join(err, execution.Purge(h.Progress, patch.Merge, body, sub))
			}
		}
		err = errors.Join(err, execution.Purge(h.Progress, patch.Merge, body, id))
	}
	h.Interim.Purge(&patch, body)
	// A storage of essences has no removal; but what it would write shows where it keeps them.
	places := patching.Patch{Merge: map[string]any{}}
	if err := h.Lens.Diffbase.Store(places.Merge, body, diffbase.Essence{}); err == nil {
		addRemoval(&patch, nil, places.Merge, body)
	}
	return patch.Merge, err
}

// addRemoval adds to the patch the removal of those places of the object.
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

// bind says whose memory it is, so that a copy of the object is not taken for it.
func (o *object) bind(patch *patching.Patch) error {
	uid, key := patching.UIDOf(o.body), o.handling.boundTo(o.kept)
	if o.handling.BoundTo == "" || uid == "" {
		return nil
	}
	if err := o.joinAgain(patch, key); err != nil || annotationsOf(o.body)[key] == uid {
		return err
	}
	fillIn(patch.Merge, o.foreign)
	patch.SetIn([]string{"metadata", "annotations", key}, uid)
	prefix, _, _ := strings.Cut(o.handling.BoundTo, "/")
	if !keys.NeedsMarker(prefix) {
		return nil
	}
	return storage.AnnotateOnce(patch.Merge, o.body, keys.MarkerKey(prefix), keys.ManagedValue)
}

// joinAgain removes what was kept apart from a copy once the object has its memory under the usual keys again, with the
// binding of that name.
func (o *object) joinAgain(patch *patching.Patch, binding string) error {
	bound, annotations, found := o.handling.Interim.annotations.Bound, annotationsOf(o.body), false
	for name := range annotations { // without making the key, for nearly all objects
		found = found || bound != "" && name != binding && strings.HasPrefix(name, bound)
	}
	if !found {
		return nil
	}
	key := keys.KindBound(o.body, bound)
	if key == binding || annotations[key] == nil {
		return nil
	}
	merge, err := o.handling.removalOfMemory(o.handling.keepApart(o.body))
	fillIn(patch.Merge, merge)
	patch.SetIn([]string{"metadata", "annotations", key}, nil)
	return err
}

// unbind is for an object of which nothing is remembered any more. What was copied from another object stays bound to
// that.
func (o *object) unbind(patch *patching.Patch) {
	key := o.handling.boundTo(o.kept)
	if o.foreign == nil && o.handling.BoundTo != "" && annotationsOf(o.body)[key] != nil {
		patch.SetIn([]string{"metadata", "annotations", key}, nil)
	}
}
