package health

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// The defaults of Limits.
const (
	// DefaultSilenceTimeout is the default time that a resource can be without a watch.
	DefaultSilenceTimeout = 70 * time.Second
	// DefaultStuckTimeout is long, as its end can restart the process.
	DefaultStuckTimeout = 10 * time.Minute
)

// CheckLimits are the settings of a Health. Zero values mean the defaults.
type CheckLimits struct {
	// SilenceTimeout is the time that a resource can be without a watch; a negative value means DefaultSilenceTimeout.
	SilenceTimeout time.Duration
	// StuckTimeout is the time that a worker can be stuck; a negative value disables the check.
	StuckTimeout time.Duration
}

// Health collects the reports of the parts of one operator. It can be used concurrently. A nil Health ignores all
// reports.
type Health struct {
	mu                  sync.Mutex // guards the fields below
	limits              CheckLimits
	stage               Stage
	servingCheck        func() bool              // nil until [Health.ReportServing]
	unfilledIndices     func() []string          // returns the indexed resources without a listing
	hasDiscovered       bool                     // the resources were looked up
	unansweredSelectors []string                 // the selectors without an answer of the API server
	scopes              map[string]*WatchedScope // by name
	workers             map[*Workers]struct{}
}

// Stage is the progress of an operator towards its start.
type Stage int

const (
	// Waiting means that the process is still busy with steps that precede the operator.
	Waiting Stage = iota
	// StandingBy means that another process is the leader.
	StandingBy
	// Starting means that the startup handlers are running.
	Starting
	// Started lasts until the process exits.
	Started
)

// New returns a Health in the stage Waiting, with the default limits.
func New() *Health {
	h := &Health{scopes: map[string]*WatchedScope{}, workers: map[*Workers]struct{}{}}
	h.SetLimits(CheckLimits{})
	return h
}

// SetLimits replaces the limits: the settings can be known later than the first reports.
func (h *Health) SetLimits(limits CheckLimits) {
	limits.StuckTimeout = cmp.Or(limits.StuckTimeout, DefaultStuckTimeout)
	if limits.SilenceTimeout <= 0 {
		limits.SilenceTimeout = DefaultSilenceTimeout
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.limits = limits
}

// ReachStage reports that the operator has reached the stage. An earlier stage is ignored.
func (h *Health) ReachStage(stage Stage) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stage = max(h.stage, stage)
}

// ReportServing reports that the operator should be serving until the context ends, whenever open returns true; it
// returns false during a pause. Unfilled returns the indexed resources that the handlers still wait for.
func (h *Health) ReportServing(ctx context.Context, open func() bool, unfilled func() []string) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servingCheck, h.unfilledIndices = func() bool { return ctx.Err() == nil && open() }, unfilled
}

// isServing reports whether the operator should be serving now.
func (h *Health) isServing() bool {
	h.mu.Lock()
	serving := h.servingCheck // call it without the lock: it takes the lock of the gate
	h.mu.Unlock()
	return serving != nil && serving()
}

// AnnounceScopes reports the names of the scopes that should be served from now on, and the selectors that the API
// server has not answered for. Other scopes are removed. A scope that stays keeps its reports.
func (h *Health) AnnounceScopes(scopes, unanswered []string) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hasDiscovered, h.unansweredSelectors = true, unanswered
	announced := map[string]bool{}
	for _, name := range scopes {
		announced[name] = true
		if h.scopes[name] == nil {
			h.scopes[name] = &WatchedScope{name: name, lastWatchEnd: time.Now()} // the time without a watch begins now
		}
	}
	maps.DeleteFunc(h.scopes, func(name string, _ *WatchedScope) bool { return !announced[name] })
}

// Scope returns the scope of that name for reports; nil, which ignores reports, if the scope is not announced.
func (h *Health) Scope(name string) *WatchedScope {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.scopes[name]
}

// AddWorkers adds workers to the checks until dismiss is called.
func (h *Health) AddWorkers(w *Workers) (dismiss func()) {
	if h == nil {
		return func() {}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.workers[w] = struct{}{}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.workers, w)
	}
}

// pollInterval is the interval at which [Health.WaitUntilReady] runs the checks.
const pollInterval = 100 * time.Millisecond

// WaitUntilReady waits until the operator serves and all checks of [Health.ReadyChecks] pass. It returns false if the
// context ends first.
func (h *Health) WaitUntilReady(ctx context.Context) bool {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		if h.isReady() {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
}

func (h *Health) isReady() bool {
	return h.isServing() && !slices.ContainsFunc(h.ReadyChecks(), func(c Check) bool { return c.Run() != nil })
}
