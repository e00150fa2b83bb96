package activities

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// The times of a Probing.
const (
	// ProbingCache is how long results are good, from the end of the probing. Kopf has the same.
	ProbingCache = 10 * time.Second
	// ProbingPatience is how long a probing may take before those who ask are told what it is busy with.
	ProbingPatience = 10 * time.Second
)

// Probing runs the activity of the probes for those who ask for its results, once for all who ask at the same time.
type Probing struct {
	log      func() logr.Logger
	activity func() Activity
	ctx      context.Context //nolint:containedctx // of the probings, which outlive who asks for them
	stop     context.CancelFunc

	mu   sync.Mutex
	last *probing
}

// probing is one run of the activity. What follows done is set before it is closed.
type probing struct {
	began    time.Time
	progress progress
	done     chan struct{}
	ended    time.Time
	results  map[string]any
	err      error
}

// NewProbing makes one for the activity. The activity and the logger of its handlers are read before each run: until
// then, the program can still set its logger.
func NewProbing(log func() logr.Logger, activity func() Activity) *Probing {
	p := &Probing{log: log, activity: activity}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// Stop ends the probing that is running, and all that follow.
func (p *Probing) Stop() { p.stop() }

// Ask gives the results of the last probing, if they are new enough, or waits for another one.
//
// # Errors
//
// A probing that has failed, which is not kept; a [HangingError] if it takes too long, though it goes on; the end of
// the context.
func (p *Probing) Ask(ctx context.Context) (map[string]any, error) {
	now := p.present()
	select {
	case <-now.done:
		return now.results, now.err
	default:
	}
	patience := time.NewTimer(time.Until(now.began.Add(ProbingPatience)))
	defer patience.Stop()
	select {
	case <-now.done:
		return now.results, now.err
	case <-patience.C:
		return nil, &HangingError{After: time.Since(now.began).Round(time.Second), Busy: now.progress.String()}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// present is the probing that runs, or has ended just now, or begins.
func (p *Probing) present() *probing {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last != nil && p.last.good() {
		return p.last
	}
	now := &probing{began: time.Now(), done: make(chan struct{})}
	p.last = now
	go func() {
		activity := p.activity()
		activity.progress = &now.progress
		now.results, now.err = activity.Run(logf.IntoContext(p.ctx, p.log()))
		now.ended = time.Now()
		close(now.done)
	}()
	return now
}

// good is true as long as it runs, and while its results can be given.
func (r *probing) good() bool {
	select {
	case <-r.done:
		return r.err == nil && time.Since(r.ended) < ProbingCache
	default:
		return true
	}
}
