package background

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"slices"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

// Supervise starts the background handlers that match the object, and stops the others. It holds the object, by a
// finalizer, while any handler matches that has not ended by itself, whether or not it runs. It is busy while handlers
// of an object that is being deleted have not ended yet. The error is that of a filter.
//
// Handlers start only on an object that has the finalizer: otherwise, a deletion could remove the object before the
// finalizer is written, and its delete handlers would never clean up after these handlers. Optional handlers do not
// hold the object, and start without the finalizer.
func (s *Supervisor) Supervise(ctx context.Context, c *cause.Cause) (holds, busy bool, err error) {
	settings, service := s.current()
	if len(settings.Handlers) == 0 {
		return false, false, nil
	}
	if c.Deleting {
		holds, busy = s.superviseDeletion(ctx, settings.Handlers, c)
		return holds, busy, nil
	}
	matching, err := settings.matching(ctx, c)
	if err != nil {
		return false, false, err
	}
	starts := func(h *adapters.Handler) bool { return service != nil && (c.Held || h.Description.Optional) }
	o := s.tasksOf(c, slices.ContainsFunc(matching, starts))
	if o == nil {
		return slices.ContainsFunc(matching, isHolder), false, nil
	}
	if anyIdle(settings.Handlers) {
		o.noteChange(c)
	}
	holds = o.startAndStop(matching, starts)
	if !holds && !anyIdle(settings.Handlers) {
		s.forgetIdle(o)
	}
	return holds, false, nil
}

// matching are the handlers that match the object. The journal is told which ones do not.
func (s *Settings) matching(ctx context.Context, c *cause.Cause) ([]*adapters.Handler, error) {
	look := s.Journal.Of(c.Body()).LookForBackground(c)
	defer look.Note()
	return adapters.Matching(ctx, s.Handlers, c, look.Teller())
}

// superviseDeletion stops all handlers of an object that is being deleted. A handler whose filter fails does not hold
// such an object.
func (s *Supervisor) superviseDeletion(
	ctx context.Context, own []*adapters.Handler, c *cause.Cause,
) (holds, busy bool) {
	o := s.tasksOf(c, false)
	if o != nil {
		o.stop(Deleted)
		busy = o.anyRunning()
	}
	holds = busy || slices.ContainsFunc(own, func(h *adapters.Handler) bool {
		matches, err := h.Matches(ctx, c, nil)
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

// DelaysDeletion reports whether the deletion handlers of the object wait: a background handler of it has not ended,
// was not abandoned, and has taken no longer than DefaultDeletionWait since the end of its context. A pass is requested
// when that changes.
func (s *Supervisor) DelaysDeletion(c *cause.Cause) bool {
	o := s.tasksOf(c, false)
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.awaited = slices.ContainsFunc(o.list, func(t *task) bool { return !t.released && !t.overdue })
	o.logAwaited()
	return o.awaited
}

// logAwaited logs once that deletion handlers wait for tasks that have not stopped at once. The caller holds the lock.
func (o *objectTasks) logAwaited() {
	var ids []string
	for _, t := range o.list {
		if t.lingers && !t.released && !t.overdue {
			ids = append(ids, t.id())
		}
	}
	if o.awaited && !o.logged && len(ids) > 0 {
		o.logged = true
		settings, _ := o.supervisor.current()
		logging.OfObject(settings.Log, o.key, o.uid).Info("Deletion handlers wait until daemons and timers of the "+
			"object have ended", "handlers", ids)
	}
}

// anyIdle tells whether any handler waits for its object to be idle.
func anyIdle(all []*adapters.Handler) bool {
	return slices.ContainsFunc(all, func(h *adapters.Handler) bool { return h.Description.Background.Idle > 0 })
}

// noteChange restarts the idle time of timers if the essence of the object has changed.
func (o *objectTasks) noteChange(c *cause.Cause) {
	data, err := json.Marshal(c.New)
	if err != nil {
		return // an essence is JSON
	}
	sum := fnv.New64a()
	_, _ = sum.Write(data)
	o.mu.Lock()
	defer o.mu.Unlock()
	if was := o.digest; was != 0 && was != sum.Sum64() {
		o.reset = time.Now()
		for _, t := range o.list {
			t.wakeIdle()
		}
	}
	o.digest = sum.Sum64()
}

// startAndStop starts the matching handlers that do not run, and stops the others. It holds the object if a deletion
// would have to stop any handler.
func (o *objectTasks) startAndStop(
	matching []*adapters.Handler, starts func(*adapters.Handler) bool,
) (holds bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range append([]*task{}, o.list...) {
		if !among(matching, t.handler) {
			t.stop(Unmatched)
		}
	}
	for _, h := range matching {
		if o.isDone(h.Description.ID) {
			continue
		}
		holds = holds || isHolder(h)
		if starts(h) && o.task(h.Description.ID) == nil {
			o.start(h)
		}
	}
	return holds
}

func isHolder(h *adapters.Handler) bool { return h.Description.Holds() }

func among(list []*adapters.Handler, h *adapters.Handler) bool {
	return slices.ContainsFunc(list, func(other *adapters.Handler) bool {
		return other.Description.ID == h.Description.ID
	})
}
