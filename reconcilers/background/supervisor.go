package background

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
)

// Supervisor runs the background handlers of the objects of one kind. It outlives the controllers of the kind, as it
// knows which handlers are finished, and which still run and must not run twice.
type Supervisor struct {
	// Ticks bound the ticks of timers that run at once, Daemons the daemons.
	Ticks, Daemons *Limit

	mu       sync.Mutex
	settings Settings
	service  Service
	open     bool // while a controller of the kind runs
	byUID    map[types.UID]*objectTasks
	ending   map[*objectTasks]bool // those of objects that are gone, until they have ended
	running  sync.WaitGroup        // runs that End waits for
}

// Begin starts handlers from now on, with these settings.
func (s *Supervisor) Begin(settings Settings, service Service) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings, s.service, s.open = settings, service, true
	if s.byUID == nil {
		s.byUID = map[types.UID]*objectTasks{}
	}
}

// End stops all handlers, and waits for them as long as their settings say. It starts no more of them.
func (s *Supervisor) End(reason Reason) {
	s.Stop(reason)
	s.running.Wait()
}

// Stop stops all handlers, and does not wait for them.
func (s *Supervisor) Stop(reason Reason) {
	s.mu.Lock()
	s.open = false
	all := make([]*objectTasks, 0, len(s.byUID))
	for _, o := range s.byUID {
		all = append(all, o)
	}
	for o := range s.ending {
		all = append(all, o)
	}
	s.mu.Unlock()
	for _, o := range all {
		o.stop(reason)
	}
}

// Fire begins the tick of a timer whose request has come up in the queue.
func (s *Supervisor) Fire(uid types.UID, handler string) {
	s.mu.Lock()
	o := s.byUID[uid]
	s.mu.Unlock()
	if o != nil {
		o.fire(handler)
	}
}

// Forget stops the handlers of an object that is gone.
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

// current gives the settings and the service in force; no service while no controller of the kind runs.
func (s *Supervisor) current() (Settings, Service) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		return s.settings, nil
	}
	return s.settings, s.service
}

// lastService is the service that was in force last: tasks that end after it still read their objects there.
func (s *Supervisor) lastService() Service {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.service
}

// tasksOf gives the tasks of an object. If it has none, they are made if they are wanted, and nil otherwise.
func (s *Supervisor) tasksOf(what *cause.Cause, wanted bool) *objectTasks {
	object := unstructured.Unstructured{Object: what.Body}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.byUID[object.GetUID()]
	if o == nil && wanted {
		o = &objectTasks{
			supervisor: s, uid: object.GetUID(),
			key: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}, reset: time.Now(),
		}
		s.byUID[o.uid] = o
	}
	return o
}
