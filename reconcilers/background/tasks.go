package background

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// objectTasks are the background handlers of one object.
type objectTasks struct {
	supervisor *Supervisor
	key        types.NamespacedName
	uid        types.UID

	mu      sync.Mutex
	list    []*task          // tasks that have not ended, even if abandoned
	done    []string         // ids of handlers that have ended by themselves
	reset   time.Time        // last change of the essence
	digest  uint64           // of the essence
	written *jsontext.Object // answer to our last write, or the latest of a former cache, until the cache has it

	forgotten bool // the object is deleted
	awaited   bool // deletion handlers wait
	logged    bool // and that is logged
}

// task is one background handler of one object. The lock of the object guards its fields.
type task struct {
	object  *objectTasks
	handler *adapters.Handler

	started time.Time // when the first attempt of this run was due
	retries int
	trace   progress.Trace // that of the attempts of this run
	due     time.Time      // next tick of a timer, not counting the idle time; zero if unknown
	ended   time.Time      // end of the last tick of a timer that has an idle time only

	writing   chan struct{} // has room for one write at a time
	running   bool
	calling   bool      // the function is being called
	gate      kind.Gate // that counts the run; nil does not
	reason    Reason
	stopping  chan struct{}
	cancel    context.CancelCauseFunc
	settle    func() bool // has the end of the permission to write make no difference any more
	released  bool        // End does not wait for it any more: it has ended, or was abandoned
	cancelDue bool        // the cancellation backoff is over
	lingers   bool        // it has not stopped by itself at once
	overdue   bool        // deletion handlers do not wait for it any more
}

func (t *task) id() string { return t.handler.Description.ID }

func (t *task) background() *handlers.Background { return t.handler.Description.Background }

func (t *task) settings() *Settings {
	settings, _ := t.object.supervisor.current()
	return settings
}

// log names the object and the handler.
func (t *task) log() logr.Logger {
	return logging.OfObject(t.settings().Log, t.object.key, t.object.uid).WithValues("handler", t.id())
}

func (o *objectTasks) task(id string) *task {
	for _, t := range o.list {
		if t.id() == id {
			return t
		}
	}
	return nil
}

func (o *objectTasks) isDone(id string) bool { return slices.Contains(o.done, id) }

// isDoneUnlocked is isDone for callers that do not hold the lock.
func (o *objectTasks) isDoneUnlocked(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.isDone(id)
}

// start makes and starts a new task. The caller holds the lock.
func (o *objectTasks) start(h *adapters.Handler) {
	t := &task{object: o, handler: h}
	o.list = append(o.list, t)
	if h.Description.Background.Daemon {
		t.launch()
		return
	}
	now := time.Now()
	t.due = now.Add(t.initialDelay())
	t.started = t.due
	t.enqueue(now)
}

// initialDelay asks the handler for its delay; it is zero if that fails.
func (t *task) initialDelay() time.Duration {
	if t.background().InitialDelay == nil {
		return 0
	}
	body, err := t.object.latest().Value()
	var delay time.Duration
	if err == nil {
		delay, err = t.background().InitialDelay(body)
	}
	if err != nil {
		t.log().Error(err, "Initial delay of a handler failed; starting it without a delay", panics.Stack(err)...)
		return 0
	}
	return max(delay, 0)
}

// stop stops all tasks of the object.
func (o *objectTasks) stop(reason Reason) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range append([]*task{}, o.list...) {
		t.stop(reason)
	}
}

// anyRunning reports whether any task has not ended yet that the finalizer waits for.
func (o *objectTasks) anyRunning() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.list, func(t *task) bool { return !t.released && isHolder(t.handler) })
}

// latest gives the newest known state of the object: that of the cache, or the answer to our last write. The caller
// holds the lock.
func (o *objectTasks) latest() *jsontext.Object {
	var cached *jsontext.Object
	if service := o.supervisor.lastService(); service != nil {
		cached = service.Newest(o.key, o.uid)
	}
	switch {
	case o.written == nil || cached != nil && !older(cached, o.written):
		o.written = nil
		return cached
	default:
		return o.written
	}
}

// keepLatest keeps the newest known state of the object for handlers that were abandoned, and may go on without the
// cache.
func (o *objectTasks) keepLatest() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.list) > 0 {
		o.written = o.latest()
	}
}

// noteWritten keeps the answer to our own write if it is newer than the last one. The caller holds the lock.
func (o *objectTasks) noteWritten(body map[string]any) {
	if written := jsontext.Of(body); o.written == nil || older(o.written, written) {
		o.written = written
	}
}

func older(a, b *jsontext.Object) bool { return patching.Newer(versionOf(b), versionOf(a)) }

func versionOf(object *jsontext.Object) string { return object.String("metadata", "resourceVersion") }

// end removes the task, and marks its handler as done unless it was stopped. The caller holds the lock.
func (t *task) end() {
	t.object.list = slices.DeleteFunc(t.object.list, func(other *task) bool { return other == t })
	if t.reason == 0 {
		t.object.done = append(t.object.done, t.id())
	}
	t.requestReconcile()
	if t.object.forgotten {
		t.object.supervisor.forgetIdleLocked(t.object)
	}
}

// requestReconcile requests a pass over the object, which may wait for the end of the task to remove the finalizer, or
// to start another task.
func (t *task) requestReconcile() {
	settings, service := t.object.supervisor.current()
	if t.reason == 0 && settings.LeaveFinalizers {
		return
	}
	if service != nil {
		service.Enqueue(t.object.key, "", 0)
	}
}

func (t *task) withLogger(ctx context.Context) context.Context {
	return logf.IntoContext(ctx, logging.OfObject(t.settings().Log, t.object.key, t.object.uid))
}
