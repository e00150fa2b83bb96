package background

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
)

// Supervisor runs the background handlers of all objects of one resource. It outlives the controllers of the resource,
// because it must remember which handlers are finished, and which ones are still running and must not run twice.
//
// Locks are taken in this order: objectTasks.mu, then Supervisor.mu.
type Supervisor struct {
	// Ticks limits how many ticks of timers run at once, Daemons how many daemons.
	Ticks, Daemons *Limit

	mu            sync.Mutex
	settings      *KindSettings // nil before the first [Supervisor.AllowStarts]; replaced as a whole, never modified
	service       Service       // the present or last controller; nil after [Supervisor.StopAndWait]
	hasController bool          // true while a controller of the resource runs
	byUID         map[types.UID]*objectTasks
	ending        map[*objectTasks]bool // deleted objects whose tasks have not ended yet
	running       sync.WaitGroup        // runs that [Supervisor.StopAndWait] waits for
}

// AllowStarts lets Supervise start handlers with these settings, for a controller that starts.
func (s *Supervisor) AllowStarts(settings KindSettings, service Service) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings, s.service, s.hasController = &settings, service, true
	if s.byUID == nil {
		s.byUID = map[types.UID]*objectTasks{}
	}
}

// StopAndWait stops all handlers, waits for them as long as their settings allow, and starts no more of them.
func (s *Supervisor) StopAndWait(reason StopReason) {
	s.StopAll(reason)
	s.running.Wait()
	// Abandoned handlers continue without the cache: keep the last state of their objects for them.
	for _, o := range s.allTasks() {
		o.keepLatestState()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.service = nil // release the cache of the controller
}

// StopAll stops all handlers without waiting for them, and starts no more of them.
func (s *Supervisor) StopAll(reason StopReason) {
	// Close first: passes that begin later must not start handlers.
	s.mu.Lock()
	s.hasController = false
	s.mu.Unlock()
	for _, o := range s.allTasks() {
		o.stopTasks(reason)
	}
}

// allTasks returns the tasks of all objects, deleted or not. It copies them, as callers take their locks.
func (s *Supervisor) allTasks() []*objectTasks {
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

// FireTimer begins the tick of a timer if it is due. A worker calls it for a timer's request from the queue.
func (s *Supervisor) FireTimer(uid types.UID, handler string) {
	s.mu.Lock()
	o := s.byUID[uid]
	s.mu.Unlock()
	if o != nil {
		o.fireTimer(handler)
	}
}

// ForgetObject stops the handlers of a deleted object, and drops the object when they have ended. A new object may have
// the same name, but not the same uid.
func (s *Supervisor) ForgetObject(uid types.UID) {
	s.mu.Lock()
	o := s.byUID[uid]
	delete(s.byUID, uid)
	if o != nil {
		// The tasks still need time to end. Keep them reachable for stops and counts.
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
	o.forgotten, o.reportsEnd = true, len(o.list) > 0
	o.mu.Unlock()
	o.stopTasks(Deleted)
	s.forgetIdle(o)
}

// forgetIdle drops an object that has neither running nor finished handlers.
func (s *Supervisor) forgetIdle(o *objectTasks) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s.forgetIdleLocked(o)
}

// forgetIdleLocked is forgetIdle for callers that hold the object's lock. Finished handlers are remembered as long as
// the object exists: without that memory, they would start again.
func (s *Supervisor) forgetIdleLocked(o *objectTasks) {
	if len(o.list) > 0 || len(o.finishedIDs) > 0 && !o.forgotten {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The object may have got new tasks under its uid meanwhile.
	if s.byUID[o.uid] == o {
		delete(s.byUID, o.uid)
	}
	delete(s.ending, o)
	if o.reportsEnd && s.settings.OnForgotten != nil {
		s.settings.OnForgotten(o.key, o.uid)
	}
}

// currentSettings returns the present settings and service. The service is nil while no controller of the resource
// runs.
func (s *Supervisor) currentSettings() (*KindSettings, Service) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settings == nil {
		return &KindSettings{}, nil
	}
	if !s.hasController {
		return s.settings, nil
	}
	return s.settings, s.service
}

// lastService returns the last service, also after [Supervisor.StopAll] while tasks still end; nil after
// [Supervisor.StopAndWait].
func (s *Supervisor) lastService() Service {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.service
}

// tasksOf returns the tasks of an object. Without any, tasksOf makes an empty set if create is true, and returns nil
// otherwise.
func (s *Supervisor) tasksOf(c *cause.Cause, create bool) *objectTasks {
	object := unstructured.Unstructured{Object: c.Body()}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.byUID[object.GetUID()]
	if o == nil && create {
		o = &objectTasks{
			supervisor: s, uid: object.GetUID(),
			key: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}, lastChange: time.Now(),
		}
		s.byUID[o.uid] = o
	}
	return o
}
