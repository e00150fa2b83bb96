package background

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// tasks are those of one object.
type tasks struct {
	crew *Crew
	key  types.NamespacedName
	uid  types.UID

	mu      sync.Mutex
	list    []*task // that run, or wait for their time; abandoned ones, too, while they run
	done    []string
	reset   time.Time      // since when nothing that matters has changed
	digest  uint64         // of what matters
	written map[string]any // our own last write, which the cache may not have yet

	forgotten bool // the object is gone
}

// task is one handler of one object. The fields are guarded by the object's lock.
type task struct {
	*tasks
	handler *adapters.Handler

	started time.Time // when the first attempt of this run was due
	retries int
	due     time.Time // of a timer: its next tick, idling aside; zero if that is not known
	ended   time.Time // of a timer that only idles: when the last tick was over

	writing  chan struct{} // has room for one write at a time
	running  bool
	reason   Reason
	stopping chan struct{}
	cancel   context.CancelCauseFunc
	gone     bool // it is not waited for any more
	pressing bool // the cancellation backoff is over
}

func (t *tasks) task(id string) *task {
	for _, k := range t.list {
		if k.handler.Description.ID == id {
			return k
		}
	}
	return nil
}

func (t *tasks) isDone(id string) bool { return slices.Contains(t.done, id) }

// over is isDone for those who do not have the lock.
func (t *tasks) over(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.isDone(id)
}

// start makes a new task. The lock is held.
func (t *tasks) start(h *adapters.Handler) {
	k := &task{tasks: t, handler: h}
	t.list = append(t.list, k)
	if h.Description.Background.Daemon {
		k.launch()
		return
	}
	now := time.Now()
	k.due = now.Add(k.initialDelay())
	k.started = k.due
	k.enqueue(now)
}

// initialDelay is asked of the handler. One that cannot say has none.
func (k *task) initialDelay() time.Duration {
	if k.handler.Description.Background.InitialDelay == nil {
		return 0
	}
	body := k.latest()
	delay, err := k.handler.Description.Background.InitialDelay(body)
	if err != nil {
		settings, _ := k.crew.current()
		settings.Log.Error(err, "The initial delay cannot be told; there is none",
			append(panics.Stack(err), "namespace", k.key.Namespace, "name", k.key.Name,
				"handler", k.handler.Description.ID)...)
	}
	return max(delay, 0)
}

// stop has all tasks end.
func (t *tasks) stop(reason Reason) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range append([]*task{}, t.list...) {
		k.stop(reason)
	}
}

// ending tells whether anything has not ended yet.
func (t *tasks) ending() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.list, func(k *task) bool { return !k.gone })
}

// latest is the newest that is known of the object.
func (t *tasks) latest() map[string]any {
	var cached map[string]any
	if service := t.crew.reading(); service != nil {
		cached = service.Latest(t.key, t.uid)
	}
	switch {
	case t.written == nil || cached != nil && !older(cached, t.written):
		t.written = nil
		return cached
	default:
		return t.written
	}
}

func older(a, b map[string]any) bool {
	return patching.Newer(patching.VersionOf(b), patching.VersionOf(a))
}

// leave ends the task. The lock is held.
func (k *task) leave() {
	k.list = slices.DeleteFunc(k.list, func(other *task) bool { return other == k })
	if k.reason == 0 {
		k.done = append(k.done, k.handler.Description.ID)
	}
	k.notify()
	if k.forgotten {
		k.crew.tidied(k.tasks)
	}
}

// notify has the object looked at, which may wait for the end of the task: to be let go, to have another one started,
// or to be held no more.
func (k *task) notify() {
	settings, service := k.crew.current()
	if k.reason == 0 && settings.LeaveFinalizers {
		return
	}
	if service != nil {
		service.Enqueue(k.key, "", 0)
	}
}

func (k *task) logged(ctx context.Context) context.Context {
	settings, _ := k.crew.current()
	return logf.IntoContext(ctx, settings.Log.WithValues("namespace", k.key.Namespace, "name", k.key.Name))
}
