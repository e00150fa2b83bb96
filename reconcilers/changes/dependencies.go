package changes

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

// dependencies holds the order between the sub-handlers of one run. All ids are relative to the parent.
type dependencies struct {
	selectedSubs []subHandler   // the sub-handlers of the run
	indexByID    map[string]int // indexes in all, by their ids
	// outside of the run: already finished, or not selected for the cause
	outsideStates  map[string]*execution.HandlerState
	dependents     map[int][]int // the indexes of those that run after the key
	finishedCounts map[int]int   // the number of leading dependencies that were found finished
}

// restoreDependencies builds the order between the sub-handlers, and marks those that have to wait.
func (r *subRun) restoreDependencies(declared []*adapters.HandlerChain) error {
	// Most handlers do not declare an order.
	if !slices.ContainsFunc(declared, func(h *adapters.HandlerChain) bool { return hasPredecessors(h.Description) }) {
		return nil
	}
	if err := r.subs.checkCycles(declared); err != nil {
		return err
	}
	d := dependencies{
		selectedSubs: r.selectedSubs, indexByID: make(map[string]int, len(r.selectedSubs)),
		outsideStates: map[string]*execution.HandlerState{},
		dependents:    map[int][]int{}, finishedCounts: map[int]int{},
	}
	for place, sub := range r.selectedSubs {
		d.indexByID[r.subs.relativeID(sub.handler)] = place
	}
	for _, h := range declared {
		if err := r.subs.resolveOutsideDependencies(&d, h); err != nil {
			return err
		}
	}
	// Only sub-handlers of the run must be awaited: the others were checked above.
	for place, sub := range r.selectedSubs {
		for id := range predecessorIDs(sub.handler.Description) {
			if earlier, ok := d.indexByID[id]; ok {
				d.dependents[earlier] = append(d.dependents[earlier], place)
			}
		}
		sub.state.Waiting = d.mustWait(place)
	}
	r.dependencies = d
	return nil
}

// resolveOutsideDependencies finds the dependencies of a sub-handler that are not part of the run.
func (s *subHandlers) resolveOutsideDependencies(d *dependencies, h *adapters.HandlerChain) error {
	for id := range predecessorIDs(h.Description) {
		if _, ok := d.indexByID[id]; ok || d.outsideStates[id] != nil {
			continue
		}
		if present := s.presentID(id); present != "" {
			return &permanentError{
				fmt.Sprintf("sub-handler %q of handler %q comes after %q, which is a former id: give "+
					"the present one, of %q", s.relativeID(h), s.handler.Description.ID, id, present),
			}
		}
		state, err := s.knownState(s.fullID(id))
		if err != nil {
			return err
		}
		// An undeclared sub-handler can never finish, unless it did so before.
		if !state.IsFinished() && !s.isDeclared(id) {
			return &permanentError{fmt.Sprintf(
				"sub-handler %q of handler %q comes after %q, which is not declared: declare it before they are run",
				s.relativeID(h), s.handler.Description.ID, id,
			)}
		}
		d.outsideStates[id] = state
	}
	return nil
}

// checkCycles returns an error if sub-handlers would wait for one another forever.
func (s *subHandlers) checkCycles(declared []*adapters.HandlerChain) error {
	g := graph{byID: make(map[string]*handlers.Handler, len(declared)), steps: make(map[string]step, len(declared))}
	for _, h := range declared {
		g.byID[s.relativeID(h)] = h.Description
	}
	for _, h := range declared {
		if !g.isAcyclicFrom(s.relativeID(h)) {
			return &permanentError{fmt.Sprintf("sub-handlers of handler %q wait for one another: %s",
				s.handler.Description.ID, strings.Join(g.path, " after "))}
		}
	}
	return nil
}

// graph is a depth-first search for cycles.
type graph struct {
	byID  map[string]*handlers.Handler
	steps map[string]step
	path  []string // the quoted ids from the start of the search to the present handler
}

// step is the progress of the search for one handler: not visited, on the present path, or finished.
type step int

const (
	onPath step = iota + 1
	fullyVisited
)

// isAcyclicFrom visits a handler, and returns false if a cycle was found. The way is then the cycle.
func (g *graph) isAcyclicFrom(id string) bool {
	h, quoted := g.byID[id], fmt.Sprintf("%q", id)
	switch {
	case h == nil || g.steps[id] == fullyVisited:
		return true
	// The handler is on the present path: cut off the part before the cycle.
	case g.steps[id] == onPath:
		g.path = append(g.path[slices.Index(g.path, quoted):], quoted)
		return false
	}
	g.steps[id], g.path = onPath, append(g.path, quoted)
	for earlier := range predecessorIDs(h) {
		if !g.isAcyclicFrom(earlier) {
			return false
		}
	}
	g.steps[id], g.path = fullyVisited, g.path[:len(g.path)-1]
	return true
}

// predecessorIDs yields the ids that a sub-handler runs after.
func predecessorIDs(h *handlers.Handler) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range len(h.After) + len(h.AfterFinished) {
			if !yield(predecessorAt(h, i)) {
				return
			}
		}
	}
}

// predecessorAt returns the i-th dependency: those of After come first. It avoids joining the two lists for each call.
func predecessorAt(h *handlers.Handler, i int) string {
	if i < len(h.After) {
		return h.After[i]
	}
	return h.AfterFinished[i-len(h.After)]
}

// hasPredecessors reports whether the sub-handler runs after any other.
func hasPredecessors(h *handlers.Handler) bool { return len(h.After)+len(h.AfterFinished) > 0 }

// isAwaited reports whether the sub-handler of this id must still be awaited.
func (d *dependencies) isAwaited(id string) bool {
	place, ok := d.indexByID[id]
	return ok && !d.selectedSubs[place].state.IsFinished()
}

// hasFailed reports whether the sub-handler of this id has failed permanently.
func (d *dependencies) hasFailed(id string) bool {
	if place, ok := d.indexByID[id]; ok {
		return d.selectedSubs[place].state.Failure
	}
	// [subHandlers.resolveOutsideDependencies] has added all dependencies outside of the run.
	return d.outsideStates[id].Failure
}

// mustWait reports whether a sub-handler must wait. It continues after the dependencies that were found finished
// before, as there can be thousands. By contrast, [dependencies.awaitedAndFailed] checks all of them.
func (d *dependencies) mustWait(place int) bool {
	h := d.selectedSubs[place].handler.Description
	for ; d.finishedCounts[place] < len(h.After)+len(h.AfterFinished); d.finishedCounts[place]++ {
		if d.isAwaited(predecessorAt(h, d.finishedCounts[place])) {
			return true
		}
	}
	return false
}

// awaitedAndFailed returns the unfinished dependencies of a sub-handler, and those that had to succeed but have failed.
func (d *dependencies) awaitedAndFailed(h *handlers.Handler) (awaits, lost []string) {
	for id := range predecessorIDs(h) {
		if d.isAwaited(id) {
			awaits = append(awaits, id)
		}
	}
	for _, id := range h.After {
		if d.hasFailed(id) {
			lost = append(lost, id)
		}
	}
	return awaits, lost
}
