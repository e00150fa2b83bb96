package background

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
)

// Supervisor runs the background handlers of the objects of one resource. It outlives the controllers of the resource,
// as it knows which handlers are finished, and which ones still run and must not run twice.
type Supervisor struct {
	// Ticks limits the ticks of timers that run at once, Daemons the daemons.
	Ticks, Daemons *Limit

	mu       sync.Mutex
	settings *Settings // nil before the first Begin; never modified
	service  Service
	open     bool // while a controller of the resource runs
	byUID    map[types.UID]*objectTasks
	ending   map[*objectTasks]bool // tasks of deleted objects that have not ended yet
	running  sync.WaitGroup        // runs that End waits for
}

// Begin lets Supervise start handlers, with these settings.
func (s *Supervisor) Begin(settings Settings, service Service) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings, s.service, s.open = &settings, service, true
	if s.byUID == nil {
		s.byUID = map[types.UID]*objectTasks{}
	}
}

// End stops all handlers, waits for them as long as their settings say, and starts no more of them.
func (s *Supervisor) End(reason Reason) {
	s.Stop(reason)
	s.running.Wait()
	for _, o := range s.all() {
		o.keepLatest()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.service = nil // it has all objects
}

// Stop stops all handlers without waiting for them, and starts no more of them.
func (s *Supervisor) Stop(reason Reason) {
	s.mu.Lock()
	s.open = false
	s.mu.Unlock()
	for _, o := range s.all() {
		o.stop(reason)
	}
}

// all are the tasks of all objects, be they deleted or not.
func (s *Supervisor) all() []*objectTasks {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*objectTasks, 0, len(s.byUID))
	for _, o := range s.byUID {
		all = append(all, o)
	}
	for o := range s.ending {
		all = append(all, o)
	}
	return all
}

// Fire begins the tick of a timer if it is due. The worker calls it for a timer's request of the queue.
func (s *Supervisor) Fire(uid types.UID, handler string) {
	s.mu.Lock()
	o := s.byUID[uid]
	s.mu.Unlock()
	if o != nil {
		o.fire(handler)
	}
}

// Forget stops the handlers of a deleted object, and forgets it when they have ended.
func (s *Supervisor) Forget(uid types.UID) {
	s.mu.Lock()
	o := s.byUID[uid]
	delete(s.byUID, uid)
	if o != nil {
		if s.ending == nil {
			s.ending = map[*objectTasks]bool{}
		}
		s.ending[o] = true
	}
	s.mu.Unlock()
	if o == nil {
		return
	}
	o.mu.Lock()
	o.forgotten = true
	o.mu.Unlock()
	o.stop(Deleted)
	s.forgetIdle(o)
}

// forgetIdle forgets an object that has neither running nor finished handlers.
func (s *Supervisor) forgetIdle(o *objectTasks) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s.forgetIdleLocked(o)
}

// forgetIdleLocked is forgetIdle for callers that hold the object's lock. Finished handlers are remembered as long as
// the object exists.
func (s *Supervisor) forgetIdleLocked(o *objectTasks) {
	if len(o.list) > 0 || len(o.done) > 0 && !o.forgotten {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byUID[o.uid] == o {
		delete(s.byUID, o.uid)
	}
	delete(s.ending, o)
	if o.forgotten && s.settings.Forgotten != nil {
		s.settings.Forgotten(o.uid)
	}
}

// current returns the present settings and service; a nil service while no controller of the resource runs.
func (s *Supervisor) current() (*Settings, Service) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settings == nil {
		return &Settings{}, nil
	}
	if !s.open {
		return s.settings, nil
	}
	return s.settings, s.service
}

// lastService gives the last service, also after Stop, while tasks still end; nil after End.
func (s *Supervisor) lastService() Service {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.service
}

// tasksOf gives the tasks of an object. If there are none, it makes an empty set if create is true, and returns nil
// otherwise.
func (s *Supervisor) tasksOf(c *cause.Cause, create bool) *objectTasks {
	object := unstructured.Unstructured{Object: c.Body()}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.byUID[object.GetUID()]
	if o == nil && create {
		o = &objectTasks{
			supervisor: s, uid: object.GetUID(),
			key: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}, reset: time.Now(),
		}
		s.byUID[o.uid] = o
	}
	return o
}
