package background

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

const (
	// DefaultPolling is how often a handler is mentioned that does not end. Kopf: background.cancellation_polling.
	DefaultPolling = 60 * time.Second
	// DefaultTicks is how many ticks of timers of one kind run at once.
	DefaultTicks = 1000
	// DefaultInstantExit is the chance to end at the first word, before anything else is done about it.
	DefaultInstantExit = 10 * time.Millisecond
	// leftover is how long an operator that exits waits for what has no cancellation timeout, once it is cancelled.
	leftover = 5 * time.Second
)

// Writer sends patches of one object.
type Writer interface {
	ApplyRetrying(
		ctx context.Context, target patching.Target, patch patching.Patch, refetch patching.Refetch,
	) (patching.Result, error)
}

// Service is what a crew needs of the kind while that is served.
type Service interface {
	// Latest is the newest state of the object that is known; nil if there is none. It is shared.
	Latest(key types.NamespacedName, uid types.UID) map[string]any
	// Enqueue asks for a call of Fire after a delay; or, with no handler, for a look at the object now.
	Enqueue(key types.NamespacedName, handler string, after time.Duration)
}

// Settings are those of all background handlers of one kind.
type Settings struct {
	// Handlers are the daemons and timers, in the order of registration.
	Handlers []*adapters.Handler
	// Writer sends what handlers wrote, within WriteTimeout; StatusSubresource says whether the status has a URL of its
	// own.
	Writer            Writer
	WriteTimeout      time.Duration
	StatusSubresource bool
	// Events posts Kubernetes events for the handlers.
	Events handlers.Poster
	// Backoff is the default delay after ordinary errors; zero is 60 seconds.
	Backoff time.Duration
	// Polling is the default of the handlers; zero is DefaultPolling.
	Polling time.Duration
	// LeaveFinalizers has no look taken at an object whose handler has ended by itself: as in Kopf, it is held until
	// its next event.
	LeaveFinalizers bool
	// InstantExit is how long a handler that is asked to stop may take for that before anything else is done about it;
	// zero is DefaultInstantExit. Kopf: background.instant_exit_timeout.
	InstantExit time.Duration
	// Forgotten is told of an object that is gone when its last handler has ended; nil is not. It must be quick.
	Forgotten func(types.UID)
	// Log names the kind.
	Log logr.Logger
}

// Crew runs the background handlers of the objects of one kind. It outlives the service of the kind: what is done for
// good, and what must not run twice, is known by it.
type Crew struct {
	// Ticks bound the ticks of timers that run at once, Daemons the daemons.
	Ticks, Daemons *Limit

	mu       sync.Mutex
	settings Settings
	service  Service
	open     bool // while the kind is served
	byUID    map[types.UID]*tasks
	leaving  map[*tasks]bool // of objects that are gone, until they have ended
	running  sync.WaitGroup  // what is waited for in the end
}

// Begin serves, with these settings from now on.
func (c *Crew) Begin(settings Settings, service Service) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settings, c.service, c.open = settings, service, true
	if c.byUID == nil {
		c.byUID = map[types.UID]*tasks{}
	}
}

// End stops all handlers, and waits for them as long as their settings say. Nothing may be started any more.
func (c *Crew) End(reason Reason) {
	c.Stop(reason)
	c.running.Wait()
}

// Stop has all handlers end.
func (c *Crew) Stop(reason Reason) {
	c.mu.Lock()
	c.open = false
	all := make([]*tasks, 0, len(c.byUID))
	for _, t := range c.byUID {
		all = append(all, t)
	}
	for t := range c.leaving {
		all = append(all, t)
	}
	c.mu.Unlock()
	for _, t := range all {
		t.stop(reason)
	}
}

// Fire is the entry of a timer that has come up in the queue.
func (c *Crew) Fire(uid types.UID, handler string) {
	c.mu.Lock()
	t := c.byUID[uid]
	c.mu.Unlock()
	if t != nil {
		t.fire(handler)
	}
}

// Forget stops the handlers of an object that is gone.
func (c *Crew) Forget(uid types.UID) {
	c.mu.Lock()
	t := c.byUID[uid]
	delete(c.byUID, uid)
	if t != nil {
		if c.leaving == nil {
			c.leaving = map[*tasks]bool{}
		}
		c.leaving[t] = true
	}
	c.mu.Unlock()
	if t == nil {
		return
	}
	t.mu.Lock()
	t.forgotten = true
	t.mu.Unlock()
	t.stop(Deleted)
	c.tidy(t)
}

// tidy forgets an object of which there is nothing to remember.
func (c *Crew) tidy(t *tasks) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.tidied(t)
}

// tidied is tidy with the object's lock held. What is done for good is remembered as long as the object is there.
func (c *Crew) tidied(t *tasks) {
	if len(t.list) > 0 || len(t.done) > 0 && !t.forgotten {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byUID[t.uid] == t {
		delete(c.byUID, t.uid)
	}
	delete(c.leaving, t)
	if t.forgotten && c.settings.Forgotten != nil {
		c.settings.Forgotten(t.uid)
	}
}

// current is what is in force now. While the kind is not served, there is no service, and nothing is started.
func (c *Crew) current() (Settings, Service) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.open {
		return c.settings, nil
	}
	return c.settings, c.service
}

// reading is where the newest objects are, also for those who have to end.
func (c *Crew) reading() Service {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.service
}

// of are the tasks of an object; made if they are wanted.
func (c *Crew) of(what *cause.Cause, wanted bool) *tasks {
	object := unstructured.Unstructured{Object: what.Body}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.byUID[object.GetUID()]
	if t == nil && wanted {
		t = &tasks{
			crew: c, uid: object.GetUID(),
			key: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}, reset: time.Now(),
		}
		c.byUID[t.uid] = t
	}
	return t
}
