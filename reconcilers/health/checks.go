package health

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Check is one question, with the name that it is asked by. Its error says what is wrong.
type Check struct {
	Name string
	Run  func() error
}

// Workers are those of one resource.
type Workers struct {
	// Kind is the kind of its objects.
	Kind string
	// Stuck names what has been stuck for at least so long.
	Stuck func(limit time.Duration) []string
}

// Ready are the checks of whether the operator is at work.
func (h *Health) Ready() []Check {
	return []Check{
		{"startup", h.startup},
		{"discovery", h.whileServing(h.discovered)},
		{"caches", h.whileServing(func() error { return h.ofScopes((*Scope).unsynced) })},
		{"watches", h.whileServing(h.watched)},
		{"indices", h.whileServing(h.indexed)},
	}
}

func (h *Health) watched() error {
	h.mu.Lock()
	limit := h.limits.Silence
	h.mu.Unlock()
	return h.ofScopes(func(s *Scope) error { return s.unwatched(limit) })
}

func (h *Health) indexed() error {
	h.mu.Lock()
	unfilled := h.unfilled
	h.mu.Unlock()
	if missing := unfilled(); len(missing) > 0 {
		return fmt.Errorf("handlers wait until the indexed resources are listed: %s", strings.Join(missing, ", "))
	}
	return nil
}

// Alive are the checks of whether a restart of the process would help.
func (h *Health) Alive() []Check { return []Check{{"workers", h.unstuck}} }

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

// whileServing is the check for as long as the operator should be serving.
func (h *Health) whileServing(check func() error) func() error {
	return func() error {
		if !h.isServing() {
			return nil
		}
		return check()
	}
}

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

// ofScopes joins what is wrong with any scope, in the order of their names.
func (h *Health) ofScopes(check func(*Scope) error) error {
	h.mu.Lock()
	scopes := slices.SortedFunc(maps.Values(h.scopes), func(a, b *Scope) int { return strings.Compare(a.name, b.name) })
	h.mu.Unlock()
	var wrong []error
	for _, s := range scopes {
		wrong = append(wrong, check(s))
	}
	return errors.Join(wrong...)
}

// unstuck does not ask whether the operator is serving: what is stuck in a pause is stuck.
func (h *Health) unstuck() error {
	h.mu.Lock()
	limit := h.limits.Stuck
	employed := slices.SortedFunc(maps.Keys(h.workers), func(a, b *Workers) int {
		return strings.Compare(a.Kind, b.Kind)
	})
	h.mu.Unlock()
	if limit < 0 {
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
