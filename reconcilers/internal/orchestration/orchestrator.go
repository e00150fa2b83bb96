package orchestration

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/resync"
)

// settling is how many rounds follow a request for a resync: the API server's lists are behind what happens to its
// CRDs.
const settling = 3

// Runner runs the controllers of resources.
type Runner interface {
	// Announce is told what is about to run, before any of it does, and for which selectors the API server has not
	// answered yet.
	Announce(ctx context.Context, all []Assignment, unanswered []discovery.Selector)
	// Run runs the controllers of a resource until the context ends, and returns when its last handler has returned.
	// The cause of the end is controller.ErrRestarting or controller.ErrRemoved, or it is not about the resource. It
	// may return earlier, where a resource is refused: it is tried again with the next resync.
	Run(ctx context.Context, a Assignment)
}

// Watcher requests resyncs, until the context ends.
type Watcher interface {
	Run(ctx context.Context, requester resync.Requester)
}

// Orchestrator resolves the selectors of registrations, and has a Runner run controllers for the resources.
type Orchestrator struct {
	registrations []Registration
	selectors     []discovery.Selector
	writes        map[discovery.Selector]bool
	server        discovery.Getter
	runner        Runner
	watcher       Watcher
	requests      resync.Requests
	once          bool // what the selectors mean is found out once

	running     sync.WaitGroup
	resolutions map[discovery.Selector]discovery.Resolution
	controllers map[schema.GroupVersionResource]controllers
	reported    map[discovery.Selector]string
	missing     map[discovery.Selector]time.Time // since when
	delay       time.Duration                    // what the API server asked for in the last resync
}

// Registration is one handler for the resources that a selector means.
type Registration struct {
	Selector discovery.Selector
	Handler  *adapters.Handler
}

// New makes an Orchestrator. The watcher may be nil: then it lives by resyncs at intervals.
func New(registrations []Registration, server discovery.Getter, runner Runner, watcher Watcher) *Orchestrator {
	return &Orchestrator{
		registrations: registrations, selectors: selectorsOf(registrations), writes: writing(registrations),
		server: server, runner: runner, watcher: watcher, requests: resync.NewRequests(),
		resolutions: map[discovery.Selector]discovery.Resolution{},
		controllers: map[schema.GroupVersionResource]controllers{},
		reported:    map[discovery.Selector]string{},
		missing:     map[discovery.Selector]time.Time{},
	}
}

// selectorsOf are those of the registrations, each once, in their order.
func selectorsOf(registrations []Registration) (all []discovery.Selector) {
	for _, r := range registrations {
		if !slices.Contains(all, r.Selector) {
			all = append(all, r.Selector)
		}
	}
	return all
}

// writing are the selectors with handlers whose progress, at least, is written to the objects.
func writing(registrations []Registration) map[discovery.Selector]bool {
	writes := map[discovery.Selector]bool{}
	for _, r := range registrations {
		if r.Handler.Description.Writes() {
			writes[r.Selector] = true
		}
	}
	return writes
}

// RequestResync has the selectors resolved again soon. It never blocks.
func (o *Orchestrator) RequestResync() { o.requests.RequestResync() }

// Run keeps controllers running for what the selectors mean until the context ends, and returns when the last handler
// has returned. It is called once.
func (o *Orchestrator) Run(ctx context.Context) {
	defer o.running.Wait()
	if o.once {
		o.resolveOnce(ctx)
		<-ctx.Done()
		return
	}
	if o.watcher != nil {
		o.running.Go(func() { o.watcher.Run(ctx, o.requests) })
	}
	asked, pause, unsettled := o.selectors, resync.Backoff(), 0
	interval := time.NewTicker(resync.Interval)
	defer interval.Stop()
	for {
		if o.resync(ctx, asked) && len(asked) < len(o.selectors) {
			o.resync(ctx, o.selectors) // a resource that was found later may be one that was found before
		}
		if !o.obey(ctx) {
			return
		}
		waiting := o.waiting()
		var again <-chan time.Time
		if len(waiting) > 0 || unsettled > 0 {
			again = time.After(pause.Step() - o.delay)
		}
		asked = o.selectors
		select {
		case <-ctx.Done():
			return
		case <-again:
			if unsettled--; unsettled < 0 {
				asked = waiting
			}
		case <-o.requests:
			pause, unsettled = resync.Backoff(), settling
		case <-interval.C:
		}
	}
}

// obey waits for as long as the API server has asked for, whatever requests another resync meanwhile. It returns false
// if the context ends before.
func (o *Orchestrator) obey(ctx context.Context) bool {
	if o.delay == 0 {
		return true
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(o.delay):
		return true
	}
}

// resync resolves selectors, and adjusts the controllers to the result. While the API server does not answer, selectors
// keep their last resolution. It tells whether any resolution has changed.
func (o *Orchestrator) resync(ctx context.Context, asked []discovery.Selector) (changed bool) {
	inquiry := discovery.NewInquiry(o.server, o.writes)
	for _, selector := range asked {
		before := o.resolutions[selector]
		now, err := inquiry.Resolve(ctx, selector, before.Served)
		if err == nil || discovery.IsUnserved(err) {
			o.resolutions[selector] = now
			changed = changed || !before.Equivalent(now)
		}
		o.report(ctx, selector, now, err)
	}
	o.delay = inquiry.RetryAfter()
	o.adjust(ctx)
	return changed
}

// unanswered are the selectors whose meaning is not known, in their order.
func (o *Orchestrator) unanswered() (unknown []discovery.Selector) {
	for _, selector := range o.selectors {
		if _, known := o.resolutions[selector]; !known {
			unknown = append(unknown, selector)
		}
	}
	return unknown
}

// waiting are the selectors without resources, or with an incomplete resolution.
func (o *Orchestrator) waiting() (waiting []discovery.Selector) {
	for _, selector := range o.selectors {
		if r := o.resolutions[selector]; len(r.Served) == 0 || r.Incomplete {
			waiting = append(waiting, selector)
		}
	}
	return waiting
}
