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
	// Stuck returns descriptions of the passes that have been stuck for at least the limit.
	Stuck func(limit time.Duration) []string
}

// Ready returns the readiness checks: whether the operator is serving, or why not. A paused operator is ready,
// and so is one that is not the leader.
func (h *Health) Ready() []Check {
	return []Check{
		{"startup", h.startup},
		{"discovery", h.whileServing(h.discovered)},
		{"caches", h.whileServing(func() error { return h.ofScopes((*Scope).unsynced) })},
		{"watches", h.whileServing(h.watched)},
		{"indices", h.whileServing(h.indexed)},
	}
}

// watched fails for each resource that has not had a watch for longer than the limit.
func (h *Health) watched() error {
	h.mu.Lock()
	limit := h.limits.Silence
	h.mu.Unlock()
	return h.ofScopes(func(s *Scope) error { return s.unwatched(limit) })
}

// indexed fails until the indices have the first listings of their resources: handlers wait for them.
func (h *Health) indexed() error {
	h.mu.Lock()
	unfilled := h.unfilled
	h.mu.Unlock() // called without the lock: it takes the lock of another package
	if missing := unfilled(); len(missing) > 0 {
		return fmt.Errorf("handlers wait until the indexed resources are listed: %s", strings.Join(missing, ", "))
	}
	return nil
}

// Alive returns the liveness checks: they fail if a restart of the process would help.
func (h *Health) Alive() []Check { return []Check{{"workers", h.unstuck}} }

// startup fails until the startup handlers have succeeded. A process that waits to become the leader is ready.
func (h *Health) startup() error {
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

// discovered fails until the API server has answered for all selectors of resources.
func (h *Health) discovered() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.asked:
		return errors.New("the API server has not answered yet")
	case len(h.unanswered) > 0:
		return fmt.Errorf("the API server has not answered yet for: %s", strings.Join(h.unanswered, ", "))
	default:
		return nil
	}
}

// ofScopes joins the problems of all scopes, sorted by name so that the text is stable.
func (h *Health) ofScopes(check func(*Scope) error) error {
	h.mu.Lock()
	scopes := slices.SortedFunc(maps.Values(h.scopes), func(a, b *Scope) int { return strings.Compare(a.name, b.name) })
	h.mu.Unlock() // the checks lock one scope at a time
	var wrong []error
	for _, s := range scopes {
		wrong = append(wrong, check(s))
	}
	return errors.Join(wrong...)
}

// unstuck fails for stuck workers. It also applies during a pause: a pause does not end a stuck handler.
func (h *Health) unstuck() error {
	h.mu.Lock()
	limit := h.limits.Stuck
	employed := slices.SortedFunc(maps.Keys(h.workers), func(a, b *Workers) int {
		return strings.Compare(a.Kind, b.Kind)
	})
	h.mu.Unlock()
	if limit < 0 { // negative: the check is disabled
		return nil
	}
	var wrong []error
	for _, w := range employed {
		if stuck := w.Stuck(limit); len(stuck) > 0 {
			wrong = append(wrong, fmt.Errorf("%s: %s", w.Kind, strings.Join(stuck, "; ")))
		}
	}
	return errors.Join(wrong...)
}
