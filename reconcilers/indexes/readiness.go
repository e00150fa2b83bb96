package indexes

import (
	"context"
	"slices"
	"sync"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// reminderAfter is the wait after which Remind logs, the first time, which listings handlers wait for.
const reminderAfter = 10 * time.Second

// Readiness lets all handlers wait until the index functions have seen the first listings of the indexed resources. It
// opens once, and stays open.
type Readiness struct {
	mu      sync.Mutex
	settled bool     // all kinds to wait for are known
	kinds   []string // those that were told last, until it is settled
	unknown []string // what may mean further ones
	waiting []string
	opening sync.Once
	open    chan struct{}
}

// NewReadiness makes a closed one.
func NewReadiness() *Readiness { return &Readiness{open: make(chan struct{})} }

// Begin names the kinds to wait for, and the selectors of which it is not known yet what they mean: they are waited
// for, too. Once there are none of these, later calls only take out kinds that are not served any more: handlers do not
// wait for kinds that are served later.
func (r *Readiness) Begin(kinds, unknown []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := slices.Clone(r.waiting)
	if len(unknown) == 0 {
		left = slices.DeleteFunc(left, func(kind string) bool { return !slices.Contains(kinds, kind) })
	}
	if !r.settled {
		for _, kind := range kinds {
			if !slices.Contains(r.kinds, kind) {
				left = append(left, kind)
			}
		}
		r.kinds, r.unknown, r.settled = kinds, unknown, len(unknown) == 0
	}
	r.waitFor(left)
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
	r.waiting = left
	if r.settled && len(left) == 0 {
		r.opening.Do(func() { close(r.open) })
	}
}

// Waiting gives the kinds and the selectors that are waited for; none once it is open.
func (r *Readiness) Waiting() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat(r.waiting, r.unknown)
}

// Open reports whether the indices are filled. Nil is open.
func (r *Readiness) Open() bool {
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

// Remind logs now and then what is waited for, until it is open, or the context ends.
func (r *Readiness) Remind(ctx context.Context) {
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
			if kinds := r.Waiting(); len(kinds) > 0 {
				logf.FromContext(ctx).Info("Handlers wait until the indexed resources are listed", "kinds", kinds)
			}
		}
	}
}
