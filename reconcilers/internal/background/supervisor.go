package background

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
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
