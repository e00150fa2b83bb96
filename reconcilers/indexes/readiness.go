package indexes

import (
	"context"
	"slices"
	"sync"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// reminderAfter is the wait after which Readiness logs, the first time, which listings handlers wait for.
const reminderAfter = 10 * time.Second

// Readiness lets all handlers wait until the index functions have seen the first listings of the indexed resources. It
// opens once, and stays open.
type Readiness struct {
	mu      sync.Mutex
	began   bool
	waiting []string
	open    chan struct{}
}

// NewReadiness makes a closed one.
func NewReadiness() *Readiness { return &Readiness{open: make(chan struct{})} }

// Begin names the kinds to wait for. Later calls only take out kinds that are not served any more: handlers do not wait
// for kinds that are served later.
func (r *Readiness) Begin(ctx context.Context, kinds []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.began {
		r.waitFor(
			slices.DeleteFunc(slices.Clone(r.waiting), func(kind string) bool { return !slices.Contains(kinds, kind) }),
		)
		return
	}
	r.began, r.waiting = true, kinds
	if len(kinds) == 0 {
		close(r.open)
		return
	}
	go r.remind(ctx)
}

// Done takes out a kind that is indexed, or cannot be. Nil does nothing.
func (r *Readiness) Done(kind string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waitFor(slices.DeleteFunc(slices.Clone(r.waiting), func(other string) bool { return other == kind }))
}

// waitFor replaces the kinds to wait for, and opens if none is left. The caller holds the lock.
func (r *Readiness) waitFor(left []string) {
	if len(r.waiting) > 0 && len(left) == 0 {
		close(r.open)
	}
	r.waiting = left
}

// Waiting gives the kinds that are waited for; none once it is open.
func (r *Readiness) Waiting() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.waiting)
}

// Wait waits until the indices are filled; it returns false if the context ends before that. Nil is open.
func (r *Readiness) Wait(ctx context.Context) bool {
	if r == nil {
		return true
	}
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

func (r *Readiness) remind(ctx context.Context) {
	reminder := time.NewTicker(reminderAfter)
	defer reminder.Stop()
	for {
		select {
		case <-r.open:
			return
		case <-ctx.Done():
			return
		case <-reminder.C:
			reminder.Reset(time.Minute)
			logf.FromContext(ctx).Info("Handlers wait until the indexed resources are listed", "kinds", r.Waiting())
		}
	}
}
