package background

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

// Supervise starts the background handlers that match the object, and stops the others; it stops all handlers of a
// paused object. It returns holds if a finalizer
// must hold the object: any handler matches and has not ended by itself, whether or not it runs. It returns busy while
// handlers of an object that is being deleted have not ended yet. The error is that of a filter.
//
// Handlers only start on an object that has the finalizer. Otherwise a deletion could remove the object before the
// finalizer is written, and its delete handlers could not clean up after these handlers. Optional handlers do not hold
// the object, so they start without the finalizer.
func (s *Supervisor) Supervise(ctx context.Context, c *cause.Cause) (holds, busy bool, err error) {
	settings, service := s.currentSettings()
	if len(settings.Handlers) == 0 {
		return false, false, nil
	}
	// A deletion stops all handlers, whether or not they match.
	if c.Deleting {
		holds, busy = s.superviseDeletion(ctx, settings.Handlers, c)
		return holds, busy, nil
	}
	// A paused object is not looked at any further. Its handlers start again when it is resumed.
	if c.Paused {
		if o := s.tasksOf(c, false); o != nil {
			o.startAndStop(nil, nil)
		}
		return false, false, nil
	}
	matching, err := settings.matchingHandlers(ctx, c)
	if err != nil {
		return false, false, err
	}
	// Without a service, no controller runs: nothing can be started.
	starts := func(h *adapters.HandlerChain) bool {
		return service != nil && (c.HasFinalizer || h.Description.Optional)
	}
	o := s.tasksOf(c, slices.ContainsFunc(matching, starts))
	if o == nil {
		return slices.ContainsFunc(matching, isHolder), false, nil
	}
	// Only timers with an idle time need the digest of the essence.
	if anyIdle(settings.Handlers) {
		o.restartIdleOnChange(c)
	}
	holds = o.startAndStop(matching, starts)
	// Keep the object if a timer needs the time of its last change.
	if !holds && !anyIdle(settings.Handlers) {
		s.forgetIdle(o)
	}
	return holds, false, nil
}

// matchingHandlers returns the handlers that match the object. The journal records which ones do not.
func (s *KindSettings) matchingHandlers(ctx context.Context, c *cause.Cause) ([]*adapters.HandlerChain, error) {
	look := s.Journal.ForBody(c.Body()).StartBackgroundEvaluation(c)
	defer look.AddToJournal()
	return adapters.Select(ctx, s.Handlers, c, look.VerdictFunc())
}

// superviseDeletion stops all handlers of an object that is being deleted. A handler whose filter fails does not hold
// the object, so that a broken filter cannot block a deletion.
func (s *Supervisor) superviseDeletion(
	ctx context.Context, own []*adapters.HandlerChain, c *cause.Cause,
) (holds, busy bool) {
	o := s.tasksOf(c, false)
	if o != nil {
		o.stopTasks(Deleted)
		busy = o.anyRunning()
	}
	// After a restart of the operator, handlers hold the object although they have not been started in this process.
	holds = busy || slices.ContainsFunc(own, func(h *adapters.HandlerChain) bool {
		matches, err := h.MatchesCause(ctx, c, nil)
		if err != nil {
			logf.FromContext(ctx).Error(
				err, "Filter of a background handler failed; not blocking the deletion of the object for it",
				"handler", h.Description.ID,
			)
		}
		return matches && isHolder(h) && (o == nil || !o.isDoneUnlocked(h.Description.ID))
	})
	return holds, busy
}

// DelaysDeletion reports whether the deletion handlers of the object must wait for a background handler: it has not
// ended, was not abandoned, and its context ended less than DefaultDeletionWait ago. The supervisor requests a pass
// when that changes.
func (s *Supervisor) DelaysDeletion(c *cause.Cause) bool {
	o := s.tasksOf(c, false)
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.delaysDeletion = slices.ContainsFunc(o.list, func(t *task) bool { return !t.released && !t.overdue })
	o.logAwaited()
	return o.delaysDeletion
}

// anyIdle reports whether any handler waits until its object is idle.
func anyIdle(all []*adapters.HandlerChain) bool {
	return slices.ContainsFunc(all, func(h *adapters.HandlerChain) bool { return h.Description.Background.Idle > 0 })
}

// restartIdleOnChange restarts the idle time of timers if the essence of the object has changed. In Kopf, the diff to
// the last-handled essence does so.
func (o *objectTasks) restartIdleOnChange(c *cause.Cause) {
	data, err := json.Marshal(c.New)
	if err != nil {
		return // cannot happen: an essence is JSON
	}
	sum := fnv.New64a()
	_, _ = sum.Write(data)
	o.mu.Lock()
	defer o.mu.Unlock()
	// The first digest is not a change: the idle time begins when the object is first seen.
	if was := o.digest; was != 0 && was != sum.Sum64() {
		o.lastChange = time.Now()
		for _, t := range o.list {
			t.wakeIdle()
		}
	}
	o.digest = sum.Sum64()
}

// startAndStop starts the matching handlers that do not run, and stops the others. It returns true if a deletion would
// have to stop any of the handlers.
func (o *objectTasks) startAndStop(
	matching []*adapters.HandlerChain, starts func(*adapters.HandlerChain) bool,
) (holds bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	// Stopping a task removes it from the list: iterate over a copy.
	for _, t := range append([]*task{}, o.list...) {
		if !containsHandler(matching, t.handler) {
			t.requestStop(Unmatched)
		}
	}
	for _, h := range matching {
		if o.isDone(h.Description.ID) {
			continue // finished in this process: it never starts again for this object
		}
		holds = holds || isHolder(h)
		// A task that is still stopping must end before the handler starts again. Its end requests a pass.
		if starts(h) && o.findTask(h.Description.ID) == nil {
			o.startTask(h)
		}
	}
	return holds
}

// containsHandler reports whether the list has a handler with the same id.
func containsHandler(list []*adapters.HandlerChain, h *adapters.HandlerChain) bool {
	return slices.ContainsFunc(list, func(other *adapters.HandlerChain) bool {
		return other.Description.ID == h.Description.ID
	})
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
