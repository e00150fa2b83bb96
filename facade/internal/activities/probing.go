package activities

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// The durations of a Probing.
const (
	// ProbingCache is how long successful results are reused, counted from the end of the run. It equals Kopf's value.
	ProbingCache = 10 * time.Second
	// ProbingTimeout is how long a run may take before the waiting requests get an error that names the slow handler.
	// It counts from the start of the run, also for requests that come later.
	ProbingTimeout = 10 * time.Second
)

// Probing runs the probe handlers on request and caches their results. Concurrent requests share one run, so that a
// probe is never called twice at the same time.
type Probing struct {
	log      func() logr.Logger
	activity func() ActivityHandlers
	ctx      context.Context //nolint:containedctx // of the probings, which outlive who asks for them
	stop     context.CancelFunc

	mu        sync.Mutex
	latestRun *probing // the latest run; nil before the first one
}

// probing is one run of the activity. The fields below done are only read after it is closed.
type probing struct {
	startTime time.Time
	progress  progress
	done      chan struct{}
	endTime   time.Time
	results   map[string]any
	err       error
}

// NewProbing makes a Probing for the activity. It calls both functions before each run, because the program may set its
// logger after the set-up.
func NewProbing(log func() logr.Logger, activity func() ActivityHandlers) *Probing {
	p := &Probing{log: log, activity: activity}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// StopProbing ends the running probing. Later ones end at once.
func (p *Probing) StopProbing() { p.stop() }

// AwaitResults returns the results of the last run if they are recent enough, and otherwise waits for a new run.
//
// # Errors
//
// It returns the error of a failed run, which is not cached; a [HangingError] if the run takes too long, although it
// continues; or the error of a context that has ended.
func (p *Probing) AwaitResults(ctx context.Context) (map[string]any, error) {
	now := p.currentRun()
	// A finished run has priority over the expired patience below, because select chooses at random.
	select {
	case <-now.done:
		return now.results, now.err
	default:
	}
	patience := time.NewTimer(time.Until(now.startTime.Add(ProbingTimeout)))
	defer patience.Stop()
	select {
	case <-now.done:
		return now.results, now.err
	case <-patience.C:
		return nil, &HangingError{Elapsed: time.Since(now.startTime).Round(time.Second),
			Progress: now.progress.String()}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// currentRun returns the running or cached run, or starts a new one.
func (p *Probing) currentRun() *probing {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latestRun != nil && p.latestRun.isUsable() {
		return p.latestRun
	}
	now := &probing{startTime: time.Now(), done: make(chan struct{})}
	p.latestRun = now
	// The run does not belong to the request: it continues when the request has timed out.
	go func() {
		activity := p.activity()
		activity.progress = &now.progress
		now.results, now.err = activity.Run(logf.IntoContext(p.ctx, p.log()))
		now.endTime = time.Now()
		close(now.done)
	}()
	return now
}

// isUsable reports whether the run can answer a request: it is running, or has succeeded and its results are recent.
func (r *probing) isUsable() bool {
	select {
	case <-r.done:
		return r.err == nil && time.Since(r.endTime) < ProbingCache
	default:
		return true
	}
}
