package health

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Check is one named check. Its error describes the problem.
type Check struct {
	Name string
	Run  func() error
}

// Workers are the workers of one resource.
type Workers struct {
	// Kind is the kind of its objects.
	Kind string
	// StuckPasses returns descriptions of the passes that have been stuck for at least the limit.
	StuckPasses func(limit time.Duration) []string
}

// ReadyChecks returns the readiness checks: whether the operator is serving, or why not. A paused operator is ready,
// and so is one that is not the leader.
func (h *Health) ReadyChecks() []Check {
	return []Check{
		{"startup", h.checkStartup},
		{"discovery", h.whileServing(h.checkDiscovery)},
		{"caches", h.whileServing(func() error { return h.checkScopes((*WatchedScope).checkSynced) })},
		{"watches", h.whileServing(h.checkWatches)},
		{"indices", h.whileServing(h.checkIndices)},
	}
}

// checkWatches fails for each resource that has not had a watch for longer than the limit.
func (h *Health) checkWatches() error {
	h.mu.Lock()
	limit := h.limits.SilenceTimeout
	h.mu.Unlock()
	return h.checkScopes(func(s *WatchedScope) error { return s.checkWatched(limit) })
}

// checkIndices fails until the indices have the first listings of their resources: handlers wait for them.
func (h *Health) checkIndices() error {
	h.mu.Lock()
	unfilled := h.unfilledIndices
	h.mu.Unlock() // called without the lock: it takes the lock of another package
	if missing := unfilled(); len(missing) > 0 {
		return fmt.Errorf("handlers wait until the indexed resources are listed: %s", strings.Join(missing, ", "))
	}
	return nil
}

// AliveChecks returns the liveness checks: they fail if a restart of the process would help.
func (h *Health) AliveChecks() []Check { return []Check{{"workers", h.checkWorkers}} }

// checkStartup fails until the startup handlers have succeeded. A process that waits to become the leader is ready.
func (h *Health) checkStartup() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch h.stage {
	case Waiting:
		return errors.New("the operator is not started yet")
	case Starting:
		return errors.New("the startup handlers have not succeeded yet")
	default:
		return nil
	}
}

// whileServing returns a check that only fails while the operator should be serving.
func (h *Health) whileServing(check func() error) func() error {
	return func() error {
		if !h.isServing() {
			return nil
		}
		return check()
	}
}

// checkDiscovery fails until the API server has answered for all selectors of resources.
func (h *Health) checkDiscovery() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.hasDiscovered:
		return errors.New("the API server has not answered yet")
	case len(h.unansweredSelectors) > 0:
		return fmt.Errorf("the API server has not answered yet for: %s", strings.Join(h.unansweredSelectors, ", "))
	default:
		return nil
	}
}

// checkScopes joins the problems of all scopes, sorted by name so that the text is stable.
func (h *Health) checkScopes(check func(*WatchedScope) error) error {
	h.mu.Lock()
	scopes := slices.SortedFunc(maps.Values(h.scopes),
		func(a, b *WatchedScope) int { return strings.Compare(a.name, b.name) })
	h.mu.Unlock() // the checks lock one scope at a time
	var wrong []error
	for _, s := range scopes {
		wrong = append(wrong, check(s))
	}
	return errors.Join(wrong...)
}

// checkWorkers fails for stuck workers. It also applies during a pause: a pause does not end a stuck handler.
func (h *Health) checkWorkers() error {
	h.mu.Lock()
	limit := h.limits.StuckTimeout
	employed := slices.SortedFunc(maps.Keys(h.workers), func(a, b *Workers) int {
		return strings.Compare(a.Kind, b.Kind)
	})
	h.mu.Unlock()
	if limit < 0 { // negative: the check is disabled
		return nil
	}
	var wrong []error
	for _, w := range employed {
		if stuck := w.StuckPasses(limit); len(stuck) > 0 {
			wrong = append(wrong, fmt.Errorf("%s: %s", w.Kind, strings.Join(stuck, "; ")))
		}
	}
	return errors.Join(wrong...)
}
