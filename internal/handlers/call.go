package handlers

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// Func is a user's function with its types erased.
type Func func(ctx context.Context, call *Invocation) error

// ObjectWriter changes the object of a running function.
type ObjectWriter interface {
	// AddTransform applies the transformation to the working copy now, and to the real object with the next write.
	AddTransform(patching.Transform) error
	// SetResult sets the value to be written to status.<id> if the attempt succeeds.
	SetResult(value any) error
	// Flush writes the remembered transformations now.
	Flush(ctx context.Context) error
}

// Subs runs the sub-handlers of a running function.
type Subs interface {
	// Declare adds a sub-handler. Its id does not include that of its parent.
	Declare(h *Handler) error
	// Run calls the sub-handlers that are due, as the lifecycle picks them; a nil lifecycle means the operator's. If
	// sub-handlers are unfinished, Run returns an error that the function must return in turn.
	Run(ctx context.Context, lifecycle *Lifecycle) error
	// RecordOf returns the progress of a sub-handler for the present cause. The id does not include that of the parent,
	// and the sub-handler need not be declared.
	RecordOf(id string) (progress.Record, error)
}

// LiveObject gives a background function access to the present state of its object, and to the request to stop.
type LiveObject interface {
	// Object returns the newest known state; nil if the object is gone.
	Object() *jsontext.LazyObject
	// Stopping returns a channel that is closed when the function must stop.
	Stopping() <-chan struct{}
	// StopReason returns the reason to stop; nil before that.
	StopReason() error
}

// EventPoster posts Kubernetes events about an object.
// Post creates an event. It has no level, so the level settings do not filter it.
type EventPoster interface {
	Post(ctx context.Context, body map[string]any, kind, reason, message string)
	// Takes reports whether events of the level are posted.
	Takes(level slog.Level) bool
}

// Invocation is one call of one function.
type Invocation struct {
	// Handler is the called handler.
	Handler *Handler
	// Cause is the cause of the call.
	Cause *cause.Cause
	// Resource is the resource of the object. It is shared; nil if it is not known, as in filters.
	Resource *discovery.Resource
	// Object is the working copy of this call. It includes the changes of earlier handlers. It is nil as long as the
	// object is only Given: concurrent callers must use [Invocation.WorkingCopy], which makes the copy under the lock.
	Object map[string]any
	// EncodedObject is the encoded object that Object would be a copy of, until the function changes the object. It
	// saves decoding for functions that decode the text themselves. It is shared: callers must not modify it.
	EncodedObject *jsontext.LazyObject
	// Retry counts the attempts before this one: 0 for the first.
	Retry int
	// Started is when the handler was first selected for the cause.
	Started time.Time
	// Writer changes the object.
	Writer ObjectWriter
	// Subs runs sub-handlers; nil if the handler cannot have any.
	Subs Subs
	// Events posts Kubernetes events about the object.
	Events EventPoster
	// LatestState returns the newest known state of the object; nil if the object is gone. It can be called
	// concurrently. The returned map is shared: callers must not modify it. Newest is nil if the cause is up to date,
	// as in filters.
	LatestState interface {
		Latest(key types.NamespacedName, uid types.UID) map[string]any
	}
	// LiveObject is the live object of a background handler; nil for other families.
	LiveObject LiveObject
	// LastWait is the last child that the handler waited for, if the record has it.
	LastWait progress.Wait
	// Trace is the trace context of the former attempts; empty if there is none. An observer can set it: the next
	// attempts get the new value.
	Trace progress.Trace
	// Child is the child object of a Tending handler. It is a copy for this call. The cause has the event.
	Child map[string]any
	// Admission is the request that an admission handler answers; nil for other families.
	Admission *AdmissionRequest
	// OnLostFields is called with the fields that the function has changed in its copy of the object without an effect.
	// It is nil in operators, which only log these fields.
	OnLostFields func(fields []string)

	mu sync.Mutex // guards the Object field, but not the content of the map
}

// ReportLostFields calls OnLostFields, if it is set.
func (c *Invocation) ReportLostFields(fields []string) {
	if c.OnLostFields != nil {
		c.OnLostFields(fields)
	}
}

// IndexFunc returns the entries of an object for the index. If keep is true, the object keeps its present entries.
type IndexFunc func(ctx context.Context, call *Invocation) (entries map[any]any, keep bool, err error)

// EntryStore stores the index entries of objects.
type EntryStore interface {
	// ReplaceEntries makes the entries the only ones of the object; nil removes the object.
	ReplaceEntries(origin types.UID, entries map[any]any)
}

// IndexWork holds the work of an indexing handler: Call returns the entries, and Into stores them.
type IndexWork struct {
	Call  IndexFunc
	Store EntryStore
	// ByRange fills the index from the objects of the own ranges only, if the replicas of the operator share them.
	ByRange bool
}

// Notifier reports its changes to functions. Indices implement it.
type Notifier interface {
	// Notify calls the function after each change, until stop is called.
	Notify(changed func()) (stop func())
}

// sameTarget reports whether both fill the same index, or neither fills one.
func (i *IndexWork) sameTarget(other *IndexWork) bool {
	if i == nil || other == nil {
		return i == other
	}
	return i.Store == other.Store
}

// DecodedObject returns the decoded object of the cause for a call of the handler. It returns nil for a function that
// reads the text of the object: decoding would be wasted.
func (h *Handler) DecodedObject(c *cause.Cause) (map[string]any, error) {
	if h.ReadsText && c.Object.IsEncoded() {
		return nil, nil
	}
	return c.Object.Value()
}

// WorkingCopy returns Object. The first call for an object that is only Given decodes and copies it: the decoded form
// of Given is shared. It can be called concurrently.
func (c *Invocation) WorkingCopy() (map[string]any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Object != nil || !c.EncodedObject.IsEncoded() {
		return c.Object, nil
	}
	object, err := c.EncodedObject.Value()
	c.Object = runtime.DeepCopyJSON(object)
	return c.Object, err
}

// SetWorkingCopy replaces the working copy. It can be called concurrently.
func (c *Invocation) SetWorkingCopy(object map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Object = object
}

// Kind returns the kind of the object; empty for activities. It does not read the kind from an admission request: the
// client chose that value.
func (c *Invocation) Kind() string { return c.GroupKind().Kind }

// GroupKind returns the group and kind under the same conditions.
func (c *Invocation) GroupKind() schema.GroupKind {
	switch {
	case c.Resource != nil:
		return c.Resource.GroupKind()
	case c.Admission != nil || c.Cause == nil:
		return schema.GroupKind{}
	}
	object := c.Cause.Object
	return schema.FromAPIVersionAndKind(object.StringAt("apiVersion"), object.StringAt("kind")).GroupKind()
}
