package indexes

import (
	"context"
	"slices"
	"sync"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// reminderAfter is the delay of the first log line of [Readiness.LogReminders].
const reminderAfter = 10 * time.Second

// Readiness makes all handlers wait until the index functions have seen the first lists of the indexed resources. It
// opens once and stays open.
type Readiness struct {
	mu                  sync.Mutex
	settled             bool     // the set of kinds is complete
	kinds               []string // the kinds of the last [Readiness.UpdateKinds], until settled
	unresolvedSelectors []string // selectors that are not resolved yet, and can add kinds
	unlistedKinds       []string // kinds without a complete list
	openOnce            sync.Once
	open                chan struct{}
}

// NewReadiness returns a closed Readiness.
func NewReadiness() *Readiness { return &Readiness{open: make(chan struct{})} }

// UpdateKinds sets the kinds to wait for, and the selectors that are not resolved yet: they are waited for, too. Once
// all selectors are resolved, later calls only remove kinds that are not served any more: handlers do not wait for
// kinds that appear later.
func (r *Readiness) UpdateKinds(kinds, unknown []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := slices.Clone(r.unlistedKinds)
	if len(unknown) == 0 {
		// Drop kinds that are not served any more.
		left = slices.DeleteFunc(left, func(kind string) bool { return !slices.Contains(kinds, kind) })
	}
	// Until all selectors are resolved, new kinds are added.
	if !r.settled {
		for _, kind := range kinds {
			if !slices.Contains(r.kinds, kind) {
				left = append(left, kind)
			}
		}
		r.kinds, r.unresolvedSelectors, r.settled = kinds, unknown, len(unknown) == 0
	}
	r.waitFor(left)
}

// MarkIndexed removes a kind that is indexed, or cannot be. A nil Readiness does nothing.
func (r *Readiness) MarkIndexed(kind string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waitFor(slices.DeleteFunc(slices.Clone(r.unlistedKinds), func(other string) bool { return other == kind }))
}

// waitFor replaces the kinds to wait for, and opens if there are none left. The caller holds the lock.
func (r *Readiness) waitFor(left []string) {
	r.unlistedKinds = left
	if r.settled && len(left) == 0 {
		r.openOnce.Do(func() { close(r.open) })
	}
}

// WaitingFor returns the kinds and the selectors that are waited for; empty once it is open.
func (r *Readiness) WaitingFor() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat(r.unlistedKinds, r.unresolvedSelectors)
}

// IsOpen reports whether the indices are filled. A nil Readiness is open.
func (r *Readiness) IsOpen() bool {
	if r == nil {
		return true
	}
	select {
	case <-r.open:
		return true
	default:
		return false
	}
}

// Wait blocks until the indices are filled. It returns false if the context ends first. A nil Readiness is open.
func (r *Readiness) Wait(ctx context.Context) bool {
	if r == nil {
		return true
	}
	// Check this first: with both channels ready, select picks a random one.
	select {
	case <-r.open:
		return true
	default:
	}
	select {
	case <-r.open:
		return true
	case <-ctx.Done():
		return false
	}
}

// LogReminders logs from time to time which kinds are waited for, until it opens or the context ends.
func (r *Readiness) LogReminders(ctx context.Context) {
	reminder := time.NewTicker(reminderAfter)
	defer reminder.Stop()
	for {
		select {
		case <-r.open:
			return
		case <-ctx.Done():
			return
		case <-reminder.C:
			reminder.Reset(time.Minute) // after the first line, once a minute
			if kinds := r.WaitingFor(); len(kinds) > 0 {
				logf.FromContext(ctx).Info("Handlers wait until the indexed resources are listed", "kinds", kinds)
			}
		}
	}
}
