package background

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// objectTasks are the background handlers of one object.
type objectTasks struct {
	supervisor *Supervisor
	key        types.NamespacedName
	uid        types.UID

	mu          sync.Mutex
	list        []*task   // tasks that have not ended, including abandoned ones
	finishedIDs []string  // ids of handlers that have ended by themselves
	lastChange  time.Time // time of the last change of the essence
	digest      uint64    // of the essence; zero if it is unknown
	// answer to our last write, or last state of a former cache; nil if the cache is newer
	newestState *jsontext.LazyObject

	forgotten      bool // the object is deleted
	reportsEnd     bool // the end of the last handler is reported, because one was running at the deletion
	delaysDeletion bool // deletion handlers wait for the tasks
	isDelayLogged  bool // that was logged
}

// task is one background handler of one object. The lock of the object guards its fields.
type task struct {
	object  *objectTasks
	handler *adapters.HandlerChain

	started     time.Time      // when the first attempt of this run was due
	retries     int            // failed attempts of this run
	trace       progress.Trace // of the attempts of this run
	due         time.Time      // next tick of a timer, without the idle time; zero while it runs or if it is unknown
	lastTickEnd time.Time      // end of the last tick of a timer that only has an idle time

	writeSemaphore chan struct{} // a semaphore: full during a write
	running        bool          // between beginRun and endRun
	calling        bool          // the function is being called
	gate           kind.WorkGate // gate that counts the run; nil if there is none
	reason         StopReason
	stopping       chan struct{} // closed when the function must stop
	cancel         context.CancelCauseFunc
	unsubscribe    func() bool // unsubscribes from the end of the permission to write
	// [Supervisor.StopAndWait] does not wait for the task any more: it has ended, or was abandoned
	released           bool
	cancelDue          bool // the cancellation backoff is over
	exceedsInstantExit bool // it did not stop within the instant exit time
	overdue            bool // deletion handlers do not wait for it any more
}

// handlerID returns the id of the handler.
func (t *task) handlerID() string { return t.handler.Description.ID }

// backgroundOptions returns the handler's options as a daemon or timer.
func (t *task) backgroundOptions() *handlers.BackgroundOptions {
	return t.handler.Description.Background
}

// presentSettings returns the present settings: a later controller may have replaced those of the start.
func (t *task) presentSettings() *KindSettings {
	settings, _ := t.object.supervisor.currentSettings()
	return settings
}

// taskLogger returns a logger that names the object and the handler.
func (t *task) taskLogger() logr.Logger {
	return logging.OfObject(t.presentSettings().Log, t.object.key, t.object.uid).WithValues("handler", t.handlerID())
}

// findTask returns the task of a handler; nil if there is no such task. The caller holds the lock.
func (o *objectTasks) findTask(id string) *task {
	for _, t := range o.list {
		if t.handlerID() == id {
			return t
		}
	}
	return nil
}

// isDone reports whether the handler has ended by itself in this process. The caller holds the lock.
func (o *objectTasks) isDone(id string) bool { return slices.Contains(o.finishedIDs, id) }

// isDoneUnlocked is isDone for callers that do not hold the lock.
func (o *objectTasks) isDoneUnlocked(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.isDone(id)
}

// startTask makes and starts a new task. The caller holds the lock.
func (o *objectTasks) startTask(h *adapters.HandlerChain) {
	t := &task{object: o, handler: h}
	o.list = append(o.list, t)
	if h.Description.Background.Daemon {
		t.startDaemon()
		return
	}
	// A timer starts as a request in the queue. The initial delay does not count into its timeout.
	now := time.Now()
	t.due = now.Add(t.initialDelay())
	t.started = t.due
	t.enqueueTick(now)
}

// initialDelay computes the initial delay for the object. It is zero if the user's function fails.
func (t *task) initialDelay() time.Duration {
	if t.backgroundOptions().InitialDelay == nil {
		return 0
	}
	body, err := t.object.latestState().Value()
	var delay time.Duration
	if err == nil {
		delay, err = t.backgroundOptions().InitialDelay(body)
	}
	if err != nil {
		t.taskLogger().Error(err, "Initial delay of a handler failed; starting it without a delay",
			panics.StackFields(err)...)
		return 0
	}
	return max(delay, 0)
}

// stopTasks stops all tasks of the object.
func (o *objectTasks) stopTasks(reason StopReason) {
	o.mu.Lock()
	defer o.mu.Unlock()
	// Stopping a task removes it from the list: iterate over a copy.
	for _, t := range append([]*task{}, o.list...) {
		t.requestStop(reason)
	}
}

// anyRunning reports whether the finalizer must wait for any task. Optional handlers do not delay the deletion.
func (o *objectTasks) anyRunning() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.list, func(t *task) bool { return !t.released && isHolder(t.handler) })
}

// latestState returns the newest known state of the object: the cached one, or the answer to our last write. The caller
// holds the lock.
func (o *objectTasks) latestState() *jsontext.LazyObject {
	var cached *jsontext.LazyObject
	if service := o.supervisor.lastService(); service != nil {
		cached = service.Newest(o.key, o.uid)
	}
	switch {
	// The cache has caught up with our write: it is authoritative again.
	case o.newestState == nil || cached != nil && !isOlder(cached, o.newestState):
		o.newestState = nil
		return cached
	default:
		return o.newestState
	}
}

// keepLatestState stores the newest known state of the object for abandoned handlers, which continue without the cache.
func (o *objectTasks) keepLatestState() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.list) > 0 {
		o.newestState = o.latestState()
	}
}

// noteWritten stores the answer to our own write if it is newer than the stored one. The caller holds the lock.
func (o *objectTasks) noteWritten(body map[string]any) {
	if written := jsontext.NewFromValue(body); o.newestState == nil || isOlder(o.newestState, written) {
		o.newestState = written
	}
}

// isOlder reports whether a is older than b, by their resource versions.
func isOlder(a, b *jsontext.LazyObject) bool {
	return patching.IsNewerVersion(versionOf(b), versionOf(a))
}

// versionOf returns the resource version of the object; empty without one.
func versionOf(object *jsontext.LazyObject) string {
	return object.StringAt("metadata", "resourceVersion")
}

// finishTask removes the task. Its handler is done, unless it was stopped: then it can start again. The caller holds
// the lock.
func (t *task) finishTask() {
	t.object.list = slices.DeleteFunc(t.object.list, func(other *task) bool { return other == t })
	if t.reason == 0 {
		t.object.finishedIDs = append(t.object.finishedIDs, t.handlerID())
	}
	t.requestReconcile()
	if t.object.forgotten {
		t.object.supervisor.forgetIdleLocked(t.object)
	}
}

// requestReconcile requests a pass over the object. The pass may be waiting for the end of the task, to remove the
// finalizer or to start the handler again.
func (t *task) requestReconcile() {
	settings, service := t.object.supervisor.currentSettings()
	// In Kopf, the finalizer stays until the next event of the object.
	if t.reason == 0 && settings.LeaveFinalizers {
		return
	}
	if service != nil {
		service.Enqueue(t.object.key, "", 0)
	}
}

// withLogger returns a context with a logger that names the object.
func (t *task) withLogger(ctx context.Context) context.Context {
	return logf.IntoContext(ctx, logging.OfObject(t.presentSettings().Log, t.object.key, t.object.uid))
}

// isHolder reports whether the handler requires the finalizer.
func isHolder(h *adapters.HandlerChain) bool { return h.Description.NeedsFinalizer() }
