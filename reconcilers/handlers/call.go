package handlers

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// Func is a user's function with its types erased.
type Func func(ctx context.Context, call *Invocation) error

// Writes is what a running function can do to its object.
type Writes interface {
	// Remember applies the transformation to the working copy now, and to the real object with the next write.
	Remember(patching.Transform) error
	// SetResult keeps what is delivered to status.<id> if the attempt succeeds.
	SetResult(value any) error
	// Flush writes what was remembered now.
	Flush(ctx context.Context) error
}

// Subs runs the sub-handlers of a running function.
type Subs interface {
	// Declare adds a sub-handler: its id is its own, without that of its parent.
	Declare(h *Handler) error
	// Run calls those that are due, as the lifecycle picks them; nil is the operator's. The error, if they are not all
	// finished, is to be returned by the function.
	Run(ctx context.Context, lifecycle *Lifecycle) error
	// Record is what is known of a sub-handler by its own id, declared or not, for the present cause.
	Record(id string) (progress.Record, error)
}

// Live is what a function in the background sees of its object, and of its own end.
type Live interface {
	// Object gives the newest known state; nil if the object is gone.
	Object() *jsontext.Object
	// Stopping is closed when the function has to end.
	Stopping() <-chan struct{}
	// StopReason is why; nil before.
	StopReason() error
}

// Poster posts Kubernetes events about an object.
type Poster interface {
	Post(ctx context.Context, body map[string]any, kind, reason, message string)
	// Takes tells whether events of the level are posted; those of Post have none.
	Takes(level slog.Level) bool
}

// Invocation is one call of one function.
type Invocation struct {
	// Handler is whose call this is.
	Handler *Handler
	// Cause is what happened.
	Cause *cause.Cause
	// Resource is what the object is one of. It is shared; nil where it is not known, as in filters.
	Resource *discovery.Resource
	// Object is the working copy, with the changes of the handlers before. It is this call's own, and nil where there
	// is Given, until somebody asks for Working: whoever is not alone with the call asks for it there.
	Object map[string]any
	// Given is what Object would be a copy of, where there is such a thing with a text, and as long as nothing is
	// changed. It is shared: callers must not modify it.
	Given *jsontext.Object
	// Retry counts the attempts before this one: 0 for the first.
	Retry int
	// Started is when the handler was first selected for the cause.
	Started time.Time
	// Writes changes the object.
	Writes Writes
	// Subs runs sub-handlers; nil where there can be none.
	Subs Subs
	// Events posts Kubernetes events about the object.
	Events Poster
	// Newest tells how the object is by now: nil of one that is gone. Any goroutine may ask; what it gives is shared:
	// callers must not modify it. Newest itself is nil where the cause has all that is known, as in filters.
	Newest interface {
		Latest(key types.NamespacedName, uid types.UID) map[string]any
	}
	// Live is the object as it goes on, for spawning handlers.
	Live Live
	// Waited is what the handler waited for at last, as far as that is remembered.
	Waited progress.Wait
	// Trace is that of the attempts before this one, as far as it is remembered. Whoever observes the attempt may set
	// it: the next attempts get it. Empty is none.
	Trace progress.Trace
	// Child is the object that a tending handler is told of; it is this call's own. What happened is in the cause.
	Child map[string]any
	// Admission is the request that an admitting handler answers; nil for others.
	Admission *Admission

	mu sync.Mutex // guards Object, but not what is in it
}

// IndexFunc says what is to be found of an object, and under which keys. With keep, all stays as it was.
type IndexFunc func(ctx context.Context, call *Invocation) (entries map[any]any, keep bool, err error)

// Indexed is where the values of objects go.
type Indexed interface {
	// Replace makes these all values of the object.
	Replace(origin types.UID, entries map[any]any)
	// Remove takes all values of the object away.
	Remove(origin types.UID)
}

// Index is what an indexing handler does: what Call says of an object goes Into the index.
type Index struct {
	Call IndexFunc
	Into Indexed
}

// Notifier reports its changes to functions; an index is one.
type Notifier interface {
	// Notify has the function called after each change until stop is called.
	Notify(changed func()) (stop func())
}

// sameTarget reports whether both fill the same index, or neither fills one.
func (i *Index) sameTarget(other *Index) bool {
	if i == nil || other == nil {
		return i == other
	}
	return i.Into == other.Into
}

// Opened is the object of the cause for a call of the handler. Nothing is decoded, and nil is given, for a function
// that reads the text of the object.
func (h *Handler) Opened(c *cause.Cause) (map[string]any, error) {
	if h.ReadsText && c.Object.Encoded() {
		return nil, nil
	}
	return c.Object.Value()
}

// Working is Object; the first who asks for one that is only Given has it copied. Any goroutine may ask.
func (c *Invocation) Working() (map[string]any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Object != nil || !c.Given.Encoded() {
		return c.Object, nil
	}
	object, err := c.Given.Value()
	c.Object = runtime.DeepCopyJSON(object)
	return c.Object, err
}

// WorkOn replaces the working copy. Any goroutine may do that.
func (c *Invocation) WorkOn(object map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Object = object
}

// Kind is that of the object, and empty without any, as in activities. It is not read from requests for admission,
// which may have anything for it.
func (c *Invocation) Kind() string { return c.GroupKind().Kind }

// GroupKind is the same with the group.
func (c *Invocation) GroupKind() schema.GroupKind {
	switch {
	case c.Resource != nil:
		return c.Resource.GroupKind()
	case c.Admission != nil || c.Cause == nil:
		return schema.GroupKind{}
	}
	object := c.Cause.Object
	return schema.FromAPIVersionAndKind(object.String("apiVersion"), object.String("kind")).GroupKind()
}
