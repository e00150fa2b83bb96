package changes

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// object is the object of a pass as the API server has it, by all that is known.
type object struct {
	handling *Handling
	memory   *Memory

	body    map[string]any // as last known: replaced by the answer to each write
	own     map[string]any // the same without memory that belongs to another object
	foreign map[string]any // the merge-patch that leads from body to own; nil if there is no difference
	answer  map[string]any // the last answer to a request of this pass; nil if it is the last word on the object

	gone     bool  // the object does not exist any more, or is another one under the same name
	released bool  // our write let the object go for good
	refusal  error // of the status, by the last write
	misread  bool  // a record could not be read
}

// refreshIfUncertain gets the object live if the answer to our last write was lost: what we have may be older than what
// we did.
func (o *object) refreshIfUncertain(ctx context.Context) error {
	if !o.memory.uncertain {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.handling.writeTimeout())
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
	o.accept(body, false)
	return nil
}

func (o *object) get(ctx context.Context, body map[string]any) (map[string]any, error) {
	known := &unstructured.Unstructured{Object: body}
	return o.handling.Writer.Get(ctx, known.GroupVersionKind(), client.ObjectKeyFromObject(known))
}

// send applies the patch, re-applies it to the fresh object after conflicts, and goes on from the server's answer.
func (o *object) send(ctx context.Context, patch patching.Patch) error {
	if patch.Empty() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.handling.writeTimeout())
	defer cancel()
	seen := o.body
	var fresh map[string]any
	refetch := func(ctx context.Context) (map[string]any, error) {
		body, err := o.get(ctx, seen)
		if err == nil && patching.UIDOf(body) == patching.UIDOf(seen) {
			fresh = body
		}
		return body, err
	}
	target := patching.Target{Body: seen, StatusSubresource: o.handling.StatusSubresource}
	result, err := o.handling.Writer.ApplyRetrying(ctx, target, patch, refetch)
	o.memory.uncertain = uncertain(err)
	if o.gone = result.Gone || errors.Is(err, patching.ErrReplaced); o.gone {
		return nil
	}
	o.refusal = result.StatusRefused
	o.accept(newest(fresh, result.Body), result.Released)
	return err
}

func (o *object) transform(ctx context.Context, transform patching.Transform) error {
	return o.send(ctx, patching.Patch{Transforms: []patching.Transform{transform}})
}

// accept goes on from what is now known of the object, even if the write as a whole has failed.
func (o *object) accept(body map[string]any, last bool) {
	if body != nil {
		o.body, o.answer = body, body
		_ = o.separateForeignMemory() // every round begins with it, and sees to its errors
	}
	if last {
		o.released, o.answer = true, nil
	}
}

// uncertain tells whether the write may have been done in spite of the error: the server did not say that it refuses.
func uncertain(err error) bool {
	var status apierrors.APIStatus
	if err == nil || contentRefused(err) {
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
	return record, nil
}

// recordReader reads records within the context.
func (o *object) recordReader(ctx context.Context) func(id string) (*progress.Record, error) {
	return func(id string) (*progress.Record, error) { return o.record(ctx, id) }
}

// tolerate gives the error of malformed memory, which ends the pass; unless the object is being deleted: nothing may
// hold up a deletion for ever. Then the error is logged, once: there may be any number of passes.
func (o *object) tolerate(ctx context.Context, err error) error {
	if err == nil || !patching.BeingDeleted(o.body) {
		return err
	}
	if text := err.Error(); !o.memory.logged[text] {
		logf.FromContext(ctx).Error(
			err, "Ignoring an error in the memory of an object that is being deleted", panics.Stack(err)...,
		)
		o.memory.noteLogged(text)
	}
	return nil
}
