package kind

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/controls"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// Writer reads an object, and sends patches of it.
type Writer interface {
	// Get reads the object from the API server, not from a cache.
	Get(ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey) (map[string]any, error)
	// ApplyRetrying sends the patch, and repeats it for the fresh object after a conflict.
	ApplyRetrying(ctx context.Context, target patching.Target, patch patching.Patch) (patching.WriteResult, error)
}

// Cache returns the newest known objects. It can be called concurrently.
type Cache interface {
	// Latest returns the newest known state of an object; nil if the object does not exist. The map is shared.
	Latest(key types.NamespacedName, uid types.UID) map[string]any
}

// WorkGate reports whether new work can begin: it is closed while the operator is paused.
type WorkGate interface {
	// Open reports whether another attempt can begin.
	Open() bool
	// Enter registers the start of a pass, a tick or a daemon: work that makes attempts and writes their changes. It
	// returns false, and registers nothing, if the gate is closed. Otherwise, the caller must call Leave.
	Enter() bool
	// Leave registers the end of the work.
	Leave()
}

// HandledKind is the shared environment of the handlers of one kind of objects. Workers use it concurrently and do not
// modify it.
type HandledKind struct {
	Settings
	// Resource is the resource of the objects; nil if it is not known.
	Resource *discovery.Resource
	// Cache returns the present objects to long-running functions.
	Cache Cache
	// Slot is the worker's slot that a call occupies; nil if calls do not occupy one.
	Slot execution.Slot
	// Gate reports whether calls can begin; nil means always.
	Gate WorkGate
	// Takeovers counts how often another process may have acted before. Results from before the last one are dropped.
	Takeovers int
	// Writer sends the patches. StatusSubresource is true if the status has its own URL, and needs its own request.
	Writer            Writer
	StatusSubresource bool
	// Events posts Kubernetes events for the handlers.
	Events handlers.EventPoster
	// Journal records calls and writes; nil records nothing.
	Journal *journal.KindJournal
	// Clock returns the time; nil means the real time.
	Clock func() time.Time
}

// Now returns the time in microseconds: the precision of the stored records.
func (k *HandledKind) Now() time.Time {
	if k.Clock != nil {
		return k.Clock().Truncate(time.Microsecond)
	}
	return time.Now().UTC().Truncate(time.Microsecond)
}

// MayBegin reports whether another call can begin: the operator neither exits nor is paused.
func (k *HandledKind) MayBegin(ctx context.Context) bool {
	return ctx.Err() == nil && (k.Gate == nil || k.Gate.Open())
}

// NewAttempt makes an attempt of a handler for the cause. The function gets a copy of the object. If the object is nil,
// the function reads the object of the cause.
func (k *HandledKind) NewAttempt(h *handlers.Handler, c *cause.Cause, object map[string]any) *execution.Attempt {
	a := execution.NewAttempt(h, c, object)
	a.Slot, a.Limits.Backoff = k.Slot, k.Backoff
	a.Call.Events, a.Call.Resource = k.Events, k.Resource
	return a
}

// WriteContext returns a context for a request that is not cancelled by the exit of the operator, but by the
// WriteTimeout.
func (k *HandledKind) WriteContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), k.WriteTimeout)
}

// WritePatch sends a patch for the handlers of the given name, and records it in the journal. The exit of the operator
// does not cancel it. The errors are those of [patching.PatchWriter.ApplyRetrying].
func (k *HandledKind) WritePatch(
	ctx context.Context, by string, target patching.Target, patch patching.Patch,
) (patching.WriteResult, error) {
	ctx, cancel := k.WriteContext(ctx)
	defer cancel()
	target.StatusSubresource = k.StatusSubresource
	result, err := k.Writer.ApplyRetrying(ctx, target, patch)
	k.Journal.ForBody(target.Body).RecordWrite(by, patch, target.Body, result, err)
	return result, err
}

// HasControls reports whether the object has an annotation that controls its handling. Few objects have one, so callers
// skip all other work for most of them.
func (k *HandledKind) HasControls(body map[string]any) bool {
	for key := range annotationsOf(body) {
		if keys.IsControl(k.Prefix, key) {
			return true
		}
	}
	return false
}

// PauseOf returns the pause that the annotation of the object requests. The error is that of an unknown value, which
// does not pause the object.
func (k *HandledKind) PauseOf(body map[string]any) (controls.Pause, error) {
	if !k.HasControls(body) {
		return controls.NotPaused, nil
	}
	key := keys.AnnotationKeyOn(body, k.Prefix, "", keys.Paused)
	pause, err := controls.ParsePause(annotationsOf(body)[key])
	if err != nil {
		return pause, fmt.Errorf("annotation %s: %w", key, err)
	}
	return pause, nil
}

// IsPausedIn reports whether the object is paused, given its state in an event. It decodes only objects with the
// annotation.
func (k *HandledKind) IsPausedIn(o *jsontext.LazyObject, deleting bool) bool {
	key := k.Prefix + "/" + keys.Paused
	// A ReplicaSet has another key if a Deployment owns it.
	isSet := k.Resource != nil && k.Resource.Kind == "ReplicaSet"
	if !isSet && !o.IsDecoded() && o.StringAt("metadata", "annotations", key) == "" {
		return false
	}
	// An object that cannot be decoded is not paused: its handlers report the error. So does the pass over the object
	// for an unknown value.
	body, _ := o.Value()
	pause, _ := k.PauseOf(body)
	return pause.Covers(deleting)
}

// annotationsOf returns the annotations of a body, which can be malformed.
func annotationsOf(body map[string]any) map[string]any {
	metadata, _ := body["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations
}
