package health

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// The defaults of Limits.
const (
	// DefaultSilence is as long as a watch may have nothing to tell.
	DefaultSilence = 70 * time.Second
	// DefaultStuck is long, as its end may be that of the process.
	DefaultStuck = 10 * time.Minute
)

// Limits are the settings of a Health. Zeros are the defaults.
type Limits struct {
	// Silence is how long a resource may be without a watch; negative is DefaultSilence, too.
	Silence time.Duration
	// Stuck is how long a worker may be stuck; negative is for ever.
	Stuck time.Duration
}

// Health is what the parts of one operator report. It may be used concurrently. Nil takes all reports, and keeps none.
type Health struct {
	mu         sync.Mutex
	limits     Limits
	stage      Stage
	serving    func() bool // nil is not yet
	unfilled   func() []string
	asked      bool // the API server was asked what is to be served
	unanswered []string
	scopes     map[string]*Scope
	workers    map[*Workers]struct{}
}

// Stage is how far an operator has come in its process.
type Stage int

const (
	// Waiting is for what comes before the operator in its process.
	Waiting Stage = iota
	// StandingBy is for its turn: another process is the leader.
	StandingBy
	// Starting is for its startup handlers.
	Starting
	// Started is for the rest of the process.
	Started
)

// New makes one that is Waiting, with the default limits.
func New() *Health {
	h := &Health{scopes: map[string]*Scope{}, workers: map[*Workers]struct{}{}}
	h.Limit(Limits{})
	return h
}

// Limit replaces the limits: those of the settings may come late.
func (h *Health) Limit(limits Limits) {
	limits.Stuck = cmp.Or(limits.Stuck, DefaultStuck)
	if limits.Silence <= 0 {
		limits.Silence = DefaultSilence
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.limits = limits
}

// Reach notes how far the operator has come. It never goes back.
func (h *Health) Reach(stage Stage) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stage = max(h.stage, stage)
}

// Serve notes that the operator should be serving from now on, until the context ends, whenever the function is true:
// while it is paused, it should not. What its handlers wait for are the unfilled scopes, whose indices they need.
func (h *Health) Serve(ctx context.Context, open func() bool, unfilled func() []string) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.serving, h.unfilled = func() bool { return ctx.Err() == nil && open() }, unfilled
}

// isServing tells whether the operator should be serving now.
func (h *Health) isServing() bool {
	h.mu.Lock()
	serving := h.serving
	h.mu.Unlock()
	return serving != nil && serving()
}

// Announce notes what should be served by now: scopes, by their names. The selectors that the API server has not
// answered for are unanswered.
func (h *Health) Announce(scopes, unanswered []string) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked, h.unanswered = true, unanswered
	for name := range h.scopes {
		if !slices.Contains(scopes, name) {
			delete(h.scopes, name)
		}
	}
	for _, name := range scopes {
		if h.scopes[name] == nil {
			h.scopes[name] = &Scope{name: name, lost: time.Now()}
		}
	}
}

// Scope gives what the one of that name reports to. One that is not announced, or not any more, reports to nobody.
func (h *Health) Scope(name string) *Scope {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.scopes[name]
}

// Employ has the workers looked at, until they are dismissed.
func (h *Health) Employ(w *Workers) (dismiss func()) {
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

// polling is how often AtWork looks.
const polling = 100 * time.Millisecond

// AtWork waits until the operator serves, and no check of Ready fails; it returns false if the context ends before
// that.
func (h *Health) AtWork(ctx context.Context) bool {
	ticker := time.NewTicker(polling)
	defer ticker.Stop()
	for {
		if h.atWork() {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
}

func (h *Health) atWork() bool {
	return h.isServing() && !slices.ContainsFunc(h.Ready(), func(c Check) bool { return c.Run() != nil })
}
