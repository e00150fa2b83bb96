package indexes

import (
	"context"
	"slices"
	"sync"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// reminderAfter is when it is said what the handlers wait for.
const reminderAfter = 10 * time.Second

// Readiness holds all handlers back until the first listings of the indexed kinds are through their index functions. It
// opens once, and stays open.
type Readiness struct {
	mu      sync.Mutex
	began   bool
	waiting []string
	open    chan struct{}
}

// NewReadiness holds everybody back until Begin.
func NewReadiness() *Readiness { return &Readiness{open: make(chan struct{})} }

// Begin says what is to be waited for, at the first time. Kinds that are served later are not waited for, nor those
// that are not any more.
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

// Done ticks a kind off: it is indexed, or cannot be.
func (r *Readiness) Done(kind string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waitFor(slices.DeleteFunc(slices.Clone(r.waiting), func(other string) bool { return other == kind }))
}

// waitFor goes on with those of the kinds that are left. The lock is held.
func (r *Readiness) waitFor(left []string) {
	if len(r.waiting) > 0 && len(left) == 0 {
		close(r.open)
	}
	r.waiting = left
}

// Wait is false if the context ends before. Nil is open.
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
			r.mu.Lock()
			waiting := slices.Clone(r.waiting)
			r.mu.Unlock()
			reminder.Reset(time.Minute)
			logf.FromContext(ctx).Info("Handlers wait until the indexed resources are listed", "kinds", waiting)
		}
	}
}
