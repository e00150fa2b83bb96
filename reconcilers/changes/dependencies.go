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

// dependencies are what the sub-handlers of one run come after. All ids are their own ones.
type dependencies struct {
	all        []subHandler                       // those of the run, which are waited for
	places     map[string]int                     // of these
	others     map[string]*execution.HandlerState // finished before the run, or of no interest for the cause
	dependents map[int][]int                      // who comes after whom, by their places
	met        map[int]int                        // how many of those that one comes after were found finished
}

// declarationError says that a function declares its sub-handlers wrongly. It fails for good, as it would do so again.
type declarationError struct{ text string }

// Error says what is wrong with the dependencies.
func (e *declarationError) Error() string { return e.text }

// Permanent is true.
func (e *declarationError) Permanent() bool { return true }

// restoreDependencies finds out who comes after whom, and who has to wait.
func (r *subRun) restoreDependencies(declared []*adapters.Handler) error {
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

// restoreOthers looks for those that one comes after, and that are not of the run.
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

// checkCycles finds those that would wait for one another for ever.
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

// graph is a search for cycles.
type graph struct {
	byID  map[string]*handlers.Handler
	steps map[string]step
	way   []string // from where the search began to where it is, quoted
}

// step says how far the search has come with one handler: not at all, within what it comes after, or beyond that.
type step int

const (
	within step = iota + 1
	beyond
)

// follow tells whether no way from the handler leads in a circle. Otherwise, that is the way.
func (g *graph) follow(id string) bool {
	h, quoted := g.byID[id], fmt.Sprintf("%q", id)
	switch {
	case h == nil || g.steps[id] == beyond:
		return true
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

// before are those that a sub-handler comes after.
func before(h *handlers.Handler) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range len(h.After) + len(h.AfterFinished) {
			if !yield(earlier(h, i)) {
				return
			}
		}
	}
}

func earlier(h *handlers.Handler, i int) string {
	if i < len(h.After) {
		return h.After[i]
	}
	return h.AfterFinished[i-len(h.After)]
}

func depends(h *handlers.Handler) bool { return len(h.After)+len(h.AfterFinished) > 0 }

// expects tells whether one has to be waited for.
func (d *dependencies) expects(id string) bool {
	place, ok := d.places[id]
	return ok && !d.all[place].state.Finished()
}

// failed tells whether one has failed for good.
func (d *dependencies) failed(id string) bool {
	if place, ok := d.places[id]; ok {
		return d.all[place].state.Failure
	}
	return d.others[id].Failure
}

// awaits tells whether a sub-handler must wait. It goes on from those that were found finished before, as there may be
// thousands: [dependencies.of] looks at all of them.
func (d *dependencies) awaits(place int) bool {
	h := d.all[place].handler.Description
	for ; d.met[place] < len(h.After)+len(h.AfterFinished); d.met[place]++ {
		if d.expects(earlier(h, d.met[place])) {
			return true
		}
	}
	return false
}

// of gives those that a sub-handler has to wait for, and those that it would have needed to succeed.
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
