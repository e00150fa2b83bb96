package background

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
)

// Supervisor runs the background handlers of the objects of one kind. It outlives the service of the kind: what is done
// for good, and what must not run twice, is known by it.
type Supervisor struct {
	// Ticks bound the ticks of timers that run at once, Daemons the daemons.
	Ticks, Daemons *Limit

	mu       sync.Mutex
	settings Settings
	service  Service
	open     bool // while the kind is served
	byUID    map[types.UID]*objectTasks
	leaving  map[*objectTasks]bool // of objects that are gone, until they have ended
	running  sync.WaitGroup        // what is waited for in the end
}

// Begin serves, with these settings from now on.
func (s *Supervisor) Begin(settings Settings, service Service) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings, s.service, s.open = settings, service, true
	if s.byUID == nil {
		s.byUID = map[types.UID]*objectTasks{}
	}
}

// End stops all handlers, and waits for them as long as their settings say. Nothing may be started any more.
func (s *Supervisor) End(reason Reason) {
	s.Stop(reason)
	s.running.Wait()
}

// Stop has all handlers end.
func (s *Supervisor) Stop(reason Reason) {
	s.mu.Lock()
	s.open = false
	all := make([]*objectTasks, 0, len(s.byUID))
	for _, o := range s.byUID {
		all = append(all, o)
	}
	for o := range s.leaving {
		all = append(all, o)
	}
	s.mu.Unlock()
	for _, o := range all {
		o.stop(reason)
	}
}

// Fire is the entry of a timer that has come up in the queue.
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
		if s.leaving == nil {
			s.leaving = map[*objectTasks]bool{}
		}
		s.leaving[o] = true
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

// forgetIdle forgets an object of which there is nothing to remember.
func (s *Supervisor) forgetIdle(o *objectTasks) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s.forgetIdleLocked(o)
}

// forgetIdleLocked is forgetIdle with the object's lock held. What is done for good is remembered as long as the object
// is there.
func (s *Supervisor) forgetIdleLocked(o *objectTasks) {
	if len(o.list) > 0 || len(o.done) > 0 && !o.forgotten {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byUID[o.uid] == o {
		delete(s.byUID, o.uid)
	}
	delete(s.leaving, o)
	if o.forgotten && s.settings.Forgotten != nil {
		s.settings.Forgotten(o.uid)
	}
}

// current is what is in force now. While the kind is not served, there is no service, and nothing is started.
func (s *Supervisor) current() (Settings, Service) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		return s.settings, nil
	}
	return s.settings, s.service
}

// lastService is where the newest objects are, also for tasks that have to end.
func (s *Supervisor) lastService() Service {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.service
}

// tasksOf are the tasks of an object; made if they are wanted.
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
