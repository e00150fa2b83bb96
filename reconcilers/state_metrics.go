package reconcilers

import (
	"slices"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/metrics"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/memory"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/orchestration"
)

// sizedIndex is an index that can report its size.
type sizedIndex interface {
	Len() int
	Objects() int
}

// emitStates emits the current state as metrics. The collector calls it at each scrape.
func (o *operator) emitStates(emit metrics.Emit) {
	paused := 0.0
	if !o.options.Gate.Open() {
		paused = 1
	}
	emit(metrics.Paused, paused)
	emit(metrics.PausedNamespaces, float64(len(o.options.Gate.pausedNamespaces())))
	if o.options.Sharing != nil {
		emitRanges(emit, o.options.Sharing())
	}
	for scope, kept := range o.controllers.Memory.AllScopes() {
		// Memory of a kind that was never assigned does not have handlers to report.
		found, _ := o.assignments.Load(scope.Resource)
		if a, known := found.(orchestration.Assignment); known {
			o.emitScopeStates(emit, scope, kept, a)
		}
	}
	for _, r := range o.options.Registrations {
		if r.Handler.Index == nil {
			continue
		}
		if index, ok := r.Handler.Index.Store.(sizedIndex); ok {
			emit(metrics.IndexKeys, float64(index.Len()), r.Handler.ID)
			emit(metrics.IndexedObjects, float64(index.Objects()), r.Handler.ID)
		}
	}
}

// emitRanges emits the metrics of the ranges of objects.
func emitRanges(emit metrics.Emit, status sharding.Status) {
	oldest := 0.0
	for _, one := range status.Unowned {
		if !one.Since.IsZero() {
			oldest = max(oldest, time.Since(one.Since).Seconds())
		}
	}
	emit(metrics.RangesHeld, float64(len(status.Own)))
	emit(metrics.RangeMoves, float64(status.Moves.Acquired), "acquired")
	emit(metrics.RangeMoves, float64(status.Moves.Left), "left")
	emit(metrics.RangeMoves, float64(status.Moves.Lost), "lost")
	emit(metrics.UnownedRanges, float64(len(status.Unowned)))
	emit(metrics.OldestUnownedRange, oldest)
	emit(metrics.Replicas, float64(len(status.Replicas)))
}

// emitScopeStates emits the metrics of one scope. Handlers with a count of 0 are included, because alerts do not work
// on a series that comes and goes.
func (o *operator) emitScopeStates(
	emit metrics.Emit, scope memory.KindScope, kept memory.ScopeMemory, a orchestration.Assignment,
) {
	kind, families := a.Resource.GroupKind().String(), adapters.ByFamily(a.Handlers)
	emit(metrics.RememberedObjects, float64(kept.Objects.Len()), kind)
	emitBackground(emit, kind, families.Background, kept.Background.CountTasks())
	silence, watched := o.health.Scope(scope.String()).SilentFor()
	// Without a watch, such as in a pause, its age and the unhandled changes mean nothing.
	if !watched {
		return
	}
	emit(metrics.WatchAge, silence.Seconds(), kind)
	pausedObjects, failed := kept.Objects.CountControls()
	emit(metrics.PausedObjects, float64(pausedObjects), kind)
	if len(families.Changing) == 0 {
		return
	}
	emit(metrics.FailedObjects, float64(failed), kind)
	late := kept.Unhandled.CurrentUnfinished()
	emit(metrics.Unhandled, float64(late.Changes), kind)
	emit(metrics.OldestUnhandled, late.OldestAge.Seconds(), kind)
	for n, h := range families.Changing {
		id := h.Description.ID
		same := func(other *adapters.HandlerChain) bool { return other.Description.ID == id }
		if !slices.ContainsFunc(families.Changing[:n], same) { // one id may have several handlers, for several reasons
			emit(metrics.Retries, float64(late.WaitingByHandler[id]), kind, id)
		}
	}
}

// expectFailures creates the failure counters of a kind with the value 0, when it is served from now on. It leaves out
// handlers of a selector of many kinds, such as everything: they would add as many series as the cluster has kinds,
// most of which never fail.
func (o *operator) expectFailures(a orchestration.Assignment) {
	specific := map[*handlers.Handler]bool{}
	for _, r := range o.options.Registrations {
		specific[r.Handler] = specific[r.Handler] || r.Selector.IsSpecific()
	}
	for _, h := range a.Handlers {
		if specific[h.Description] {
			h.ExpectFailures(a.Resource.GroupKind())
		}
	}
}

// emitBackground emits the number of daemons and timers by their state.
func emitBackground(
	emit metrics.Emit, kind string, own []*adapters.HandlerChain, counts map[background.TaskGroup]int,
) {
	for _, h := range own {
		id, daemon, state := h.Description.ID, h.Description.Background.Daemon, metrics.Timers
		if daemon {
			state = metrics.Daemons
		}
		for _, doing := range []background.TaskState{background.TaskRunning, background.TaskWaiting,
			background.TaskStopping} {
			count := counts[background.TaskGroup{Handler: id, Daemon: daemon, State: doing}]
			emit(state, float64(count), kind, id, string(doing))
		}
	}
}
