package changes

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// dependencies holds the order between the sub-handlers of one run. All ids are relative to the parent.
type dependencies struct {
	all        []subHandler                       // the sub-handlers of the run
	places     map[string]int                     // indexes in all, by their ids
	others     map[string]*execution.HandlerState // outside of the run: already finished, or not selected for the cause
	dependents map[int][]int                      // the indexes of those that run after the key
	met        map[int]int                        // the number of leading dependencies that were found finished
}

// declarationError reports a wrong declaration of sub-handlers. It is permanent, as the function would repeat it.
type declarationError struct{ text string }

// Error returns the text.
func (e *declarationError) Error() string { return e.text }

// Permanent returns true.
func (e *declarationError) Permanent() bool { return true }

// restoreDependencies builds the order between the sub-handlers, and marks those that have to wait.
func (r *subRun) restoreDependencies(declared []*adapters.Handler) error {
	// Most handlers do not declare an order.
	if !slices.ContainsFunc(declared, func(h *adapters.Handler) bool { return depends(h.Description) }) {
		return nil
	}
	if err := r.subs.checkCycles(declared); err != nil {
		return err
	}
	d := dependencies{
		all: r.all, places: make(map[string]int, len(r.all)), others: map[string]*execution.HandlerState{},
		dependents: map[int][]int{}, met: map[int]int{},
	}
	for place, sub := range r.all {
		d.places[r.subs.own(sub.handler)] = place
	}
	for _, h := range declared {
		if err := r.subs.restoreOthers(&d, h); err != nil {
			return err
		}
	}
	// Only sub-handlers of the run must be awaited: the others were checked above.
	for place, sub := range r.all {
		for id := range before(sub.handler.Description) {
			if earlier, ok := d.places[id]; ok {
				d.dependents[earlier] = append(d.dependents[earlier], place)
			}
		}
		sub.state.Waiting = d.awaits(place)
	}
	r.dependencies = d
	return nil
}

// restoreOthers finds the dependencies of a sub-handler that are not part of the run.
func (s *subHandlers) restoreOthers(d *dependencies, h *adapters.Handler) error {
	for id := range before(h.Description) {
		if _, ok := d.places[id]; ok || d.others[id] != nil {
			continue
		}
		if present := s.presentID(id); present != "" {
			return &declarationError{
				fmt.Sprintf("sub-handler %q of handler %q comes after %q, which is a former id: give "+
					"the present one, of %q", s.own(h), s.handler.Description.ID, id, present),
			}
		}
		state, err := s.known(s.id(id))
		if err != nil {
			return err
		}
		// An undeclared sub-handler can never finish, unless it did so before.
		if !state.Finished() && !s.isDeclared(id) {
			return &declarationError{fmt.Sprintf(
				"sub-handler %q of handler %q comes after %q, which is not declared: declare it before they are run",
				s.own(h), s.handler.Description.ID, id,
			)}
		}
		d.others[id] = state
	}
	return nil
}

// checkCycles returns an error if sub-handlers would wait for one another forever.
func (s *subHandlers) checkCycles(declared []*adapters.Handler) error {
	g := graph{byID: make(map[string]*handlers.Handler, len(declared)), steps: make(map[string]step, len(declared))}
	for _, h := range declared {
		g.byID[s.own(h)] = h.Description
	}
	for _, h := range declared {
		if !g.follow(s.own(h)) {
			return &declarationError{fmt.Sprintf("sub-handlers of handler %q wait for one another: %s",
				s.handler.Description.ID, strings.Join(g.way, " after "))}
		}
	}
	return nil
}

// graph is a depth-first search for cycles.
type graph struct {
	byID  map[string]*handlers.Handler
	steps map[string]step
	way   []string // the quoted ids from the start of the search to the present handler
}

// step is the progress of the search for one handler: not visited, on the present path, or finished.
type step int

const (
	within step = iota + 1
	beyond
)

// follow visits a handler, and returns false if a cycle was found. The way is then the cycle.
func (g *graph) follow(id string) bool {
	h, quoted := g.byID[id], fmt.Sprintf("%q", id)
	switch {
	case h == nil || g.steps[id] == beyond:
		return true
	// The handler is on the present path: cut off the part before the cycle.
	case g.steps[id] == within:
		g.way = append(g.way[slices.Index(g.way, quoted):], quoted)
		return false
	}
	g.steps[id], g.way = within, append(g.way, quoted)
	for earlier := range before(h) {
		if !g.follow(earlier) {
			return false
		}
	}
	g.steps[id], g.way = beyond, g.way[:len(g.way)-1]
	return true
}

// before yields the ids that a sub-handler runs after.
func before(h *handlers.Handler) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range len(h.After) + len(h.AfterFinished) {
			if !yield(earlier(h, i)) {
				return
			}
		}
	}
}

// earlier returns the i-th dependency: those of After come first. It avoids joining the two lists for each call.
func earlier(h *handlers.Handler, i int) string {
	if i < len(h.After) {
		return h.After[i]
	}
	return h.AfterFinished[i-len(h.After)]
}

// depends reports whether the sub-handler runs after any other.
func depends(h *handlers.Handler) bool { return len(h.After)+len(h.AfterFinished) > 0 }

// expects reports whether the sub-handler of this id must still be awaited.
func (d *dependencies) expects(id string) bool {
	place, ok := d.places[id]
	return ok && !d.all[place].state.Finished()
}

// failed reports whether the sub-handler of this id has failed permanently.
func (d *dependencies) failed(id string) bool {
	if place, ok := d.places[id]; ok {
		return d.all[place].state.Failure
	}
	// [subHandlers.restoreOthers] has added all dependencies outside of the run.
	return d.others[id].Failure
}

// awaits reports whether a sub-handler must wait. It continues after the dependencies that were found finished
// before, as there can be thousands. By contrast, [dependencies.of] checks all of them.
func (d *dependencies) awaits(place int) bool {
	h := d.all[place].handler.Description
	for ; d.met[place] < len(h.After)+len(h.AfterFinished); d.met[place]++ {
		if d.expects(earlier(h, d.met[place])) {
			return true
		}
	}
	return false
}

// of returns the unfinished dependencies of a sub-handler, and those that had to succeed but have failed.
func (d *dependencies) of(h *handlers.Handler) (awaits, lost []string) {
	for id := range before(h) {
		if d.expects(id) {
			awaits = append(awaits, id)
		}
	}
	for _, id := range h.After {
		if d.failed(id) {
			lost = append(lost, id)
		}
	}
	return awaits, lost
}
