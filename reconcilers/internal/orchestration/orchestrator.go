package orchestration

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/transport"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

// settlingRounds is the number of extra rounds after a requested resync. The discovery of the API server lags behind
// changes of CRDs, so the first round can still see the old state.
const settlingRounds = 3

// Runner runs the controllers of resources. Package reconcilers implements it.
type Runner interface {
	// AnnounceAssignments receives all assignments before any of them runs, and the selectors for which the API server
	// has not answered yet.
	AnnounceAssignments(ctx context.Context, all []Assignment, unanswered []discovery.Selector)
	// Run runs the controllers of a resource until the context ends, and returns when the last handler has returned.
	// The context ends with the cause controller.ErrRestarting or controller.ErrRemoved, unless the operator as a whole
	// ends or pauses. Run may return earlier if it refuses the resource; the next resync then calls it again.
	Run(ctx context.Context, a Assignment)
}

// Orchestrator resolves the selectors of registrations, and starts and stops controllers for the resolved resources.
// Only the goroutine of Run uses its fields, except for the requests.
type Orchestrator struct {
	registrations    []SelectedHandler
	selectors        []discovery.Selector
	writingSelectors map[discovery.Selector]bool
	server           discovery.Getter
	runner           Runner
	watcher          *discovery.CRDWatcher // nil if no selector depends on CRDs
	requests         chan struct{}         // has room for one pending request
	resolvesOnce     bool                  // resolve the selectors only at the start

	// running counts the controllers and the watcher, which Run waits for.
	running     sync.WaitGroup
	resolutions map[discovery.Selector]discovery.Resolution
	controllers map[schema.GroupVersionResource]controllers
	// lastLoggedReasons holds the last reason that was logged for a selector.
	lastLoggedReasons map[discovery.Selector]string
	missingSince      map[discovery.Selector]time.Time // since when its resource is missing
	retryAfter        time.Duration                    // Retry-After of the API server in the last resync
}

// SelectedHandler is one handler for the resources that a selector matches.
type SelectedHandler struct {
	Selector discovery.Selector
	Handler  *adapters.HandlerChain
}

// New creates an Orchestrator. Without a watcher it resyncs at intervals only.
func New(
	registrations []SelectedHandler, server discovery.Getter, runner Runner, watcher *discovery.CRDWatcher,
) *Orchestrator {
	return &Orchestrator{
		registrations: registrations, selectors: selectorsOf(registrations),
		writingSelectors: writingSelectors(registrations),
		server:           server, runner: runner, watcher: watcher, requests: make(chan struct{}, 1),
		resolutions:       map[discovery.Selector]discovery.Resolution{},
		controllers:       map[schema.GroupVersionResource]controllers{},
		lastLoggedReasons: map[discovery.Selector]string{},
		missingSince:      map[discovery.Selector]time.Time{},
	}
}

// selectorsOf returns the selectors of the registrations, each once, in their order.
func selectorsOf(registrations []SelectedHandler) (all []discovery.Selector) {
	for _, r := range registrations {
		if !slices.Contains(all, r.Selector) {
			all = append(all, r.Selector)
		}
	}
	return all
}

// writingSelectors returns the selectors whose handlers write to the objects, at least their progress.
func writingSelectors(registrations []SelectedHandler) map[discovery.Selector]bool {
	writes := map[discovery.Selector]bool{}
	for _, r := range registrations {
		if r.Handler.Description.WritesObjects() {
			writes[r.Selector] = true
		}
	}
	return writes
}

// RequestResync requests that the selectors are resolved again soon: a kind was not found any more, or may be found
// now. It never blocks. One resync serves all requests before it.
func (o *Orchestrator) RequestResync() {
	select {
	case o.requests <- struct{}{}:
	default:
	}
}

// Run keeps controllers running for the resolved resources until the context ends, and returns when the last handler
// has returned. It must be called only once.
func (o *Orchestrator) Run(ctx context.Context) {
	defer o.running.Wait()
	if o.resolvesOnce {
		o.resolveOnce(ctx)
		// Controllers run until the end of the context without further resyncs.
		<-ctx.Done()
		return
	}
	if o.watcher != nil {
		o.running.Go(func() { o.watcher.Run(ctx, o.RequestResync) })
	}
	// unsettled counts the extra rounds that are left; asked holds the selectors of the next round.
	asked, pause, unsettled := o.selectors, discovery.ResyncBackoff(), 0
	interval := time.NewTicker(discovery.ResyncInterval)
	defer interval.Stop()
	for {
		if o.resolveAndAdjust(ctx, asked) && len(asked) < len(o.selectors) {
			// A resource that was just resolved may also match another selector, with another version: resolve all of
			// them.
			o.resolveAndAdjust(ctx, o.selectors)
		}
		// The delay that the API server demanded by Retry-After counts even if another resync is requested meanwhile.
		if o.retryAfter > 0 && transport.WaitDelay(ctx, o.retryAfter) != nil {
			return
		}
		// Without missing resources or extra rounds, only the interval or a request starts the next round.
		waiting := o.waitingSelectors()
		var again <-chan time.Time
		if len(waiting) > 0 || unsettled > 0 {
			// The delay demanded by the server has already passed, so it is subtracted.
			again = time.After(pause.Step() - o.retryAfter)
		}
		asked = o.selectors
		select {
		case <-ctx.Done():
			return
		case <-again:
			// The extra rounds resolve all selectors, later ones only those without resources.
			if unsettled--; unsettled < 0 {
				asked = waiting
			}
		case <-o.requests:
			// Something has changed: start with short delays, and repeat for some rounds.
			pause, unsettled = discovery.ResyncBackoff(), settlingRounds
		case <-interval.C:
		}
	}
}

// resolveAndAdjust resolves the given selectors, and adjusts the controllers to the result. A selector keeps its last
// resolution while the API server does not answer. It returns true if any resolution has changed.
func (o *Orchestrator) resolveAndAdjust(ctx context.Context, asked []discovery.Selector) (changed bool) {
	// One inquiry per round: it caches discovery documents, which several selectors need.
	// Selectors with writing handlers need resources with the verb patch.
	inquiry := discovery.NewInquiry(o.server, o.writingSelectors)
	for _, selector := range asked {
		before := o.resolutions[selector]
		now, err := inquiry.Resolve(ctx, selector, before.Served)
		if err == nil || discovery.IsUnserved(err) {
			o.resolutions[selector] = now
			changed = changed || !before.IsEquivalent(now)
		}
		o.reportResolution(ctx, selector, now, err)
	}
	o.retryAfter = inquiry.RetryAfter()
	// Adjust after every round, also if no resolution changed: a Runner may have refused a resource before.
	o.adjustControllers(ctx)
	return changed
}

// unansweredSelectors returns the selectors without a resolution, in their order.
func (o *Orchestrator) unansweredSelectors() (unknown []discovery.Selector) {
	for _, selector := range o.selectors {
		if _, known := o.resolutions[selector]; !known {
			unknown = append(unknown, selector)
		}
	}
	return unknown
}

// waitingSelectors returns the selectors without resources, or with an incomplete resolution.
func (o *Orchestrator) waitingSelectors() (waiting []discovery.Selector) {
	for _, selector := range o.selectors {
		if r := o.resolutions[selector]; len(r.Served) == 0 || r.Incomplete {
			waiting = append(waiting, selector)
		}
	}
	return waiting
}

// NewOnce creates an Orchestrator that resolves the selectors only at the start, and runs controllers for the result
// until the end. Kinds that are added, changed or removed later have no effect. Kopf: scanning.disabled.
func NewOnce(registrations []SelectedHandler, server discovery.Getter, runner Runner) *Orchestrator {
	o := New(registrations, server, runner, nil)
	o.resolvesOnce = true
	return o
}

// resolveOnce resolves all selectors repeatedly until the API server has answered for each of them. That a resource is
// not served counts as an answer.
func (o *Orchestrator) resolveOnce(ctx context.Context) {
	for pause := discovery.ResyncBackoff(); ; {
		o.resolveAndAdjust(ctx, o.selectors)
		if o.hasAllAnswers() {
			return
		}
		// The backoff, or Retry-After of the API server if that is longer.
		if transport.WaitDelay(ctx, max(pause.Step(), o.retryAfter)) != nil {
			return
		}
	}
}

// hasAllAnswers reports whether the resolution of each selector is known and complete.
func (o *Orchestrator) hasAllAnswers() bool {
	for _, selector := range o.selectors {
		if r, known := o.resolutions[selector]; !known || r.Incomplete {
			return false
		}
	}
	return true
}

// ResolveAssignments resolves the selectors once, and runs nothing. It returns the reasons why selectors have no
// resource, or not all of them. An error means that the API server has not answered.
func ResolveAssignments(
	ctx context.Context, registrations []SelectedHandler, server discovery.Getter,
) (all []Assignment, unserved []string, err error) {
	o := New(registrations, server, nil, nil)
	inquiry := discovery.NewInquiry(server, o.writingSelectors)
	for _, selector := range o.selectors {
		now, err := inquiry.Resolve(ctx, selector, nil)
		switch {
		case err != nil && !discovery.IsUnserved(err):
			return nil, nil, fmt.Errorf("resolving %s: %w", selector, err)
		case err != nil:
			unserved = append(unserved, fmt.Sprintf("%s: %s", selector, err))
		case len(now.Served) == 0:
			unserved = append(unserved, fmt.Sprintf("%s: not served", selector))
		}
		o.resolutions[selector] = now
	}
	return o.resolveAssignments(), unserved, nil
}
