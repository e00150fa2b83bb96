package reconcilers

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/health"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/posting"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/transport"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/metrics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/settings"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/storages"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

// DefaultEventsPerSecond is how many Kubernetes events are posted in the long run.
const DefaultEventsPerSecond = posting.DefaultPerSecond

// Registration is one handler for the resources that a selector means.
type Registration struct {
	Selector discovery.Selector
	Handler  *handlers.Handler
}

// Settings are those that the engines use.
type Settings = settings.Settings

// Digests says which values are kept on the objects as digests only.
type Digests = settings.Digests

// Posting says how Kubernetes events are posted.
type Posting = posting.Options

// Fence tells when the manager does not wait for the operator any more, and refuses requests from then on.
type Fence = transport.Fence

// NewFence makes the fence of an operator in the manager, for its Options: SetupWithManager adds it to the manager.
func NewFence(m manager.Manager) *Fence { return transport.NewFence(m) }

// Options describe one operator.
type Options struct {
	Settings
	// Registrations are the handlers, in the order of registration.
	Registrations []Registration
	// Namespaces restrict the operator; none is the whole cluster. What is outside of any namespace is served anyway.
	Namespaces namespaces.Patterns
	// Matching is kept up to date with the namespaces to be served, also in a pause, from Begin on; nil has
	// SetupWithManager make one. Those that match patterns are served as soon as they are among the Admitted ones; nil
	// admits all.
	Matching, Admitted *namespaces.Live
	// Dependents are what must be released before the finalizer of an object is removed; nil if there are none.
	Dependents changes.Dependents
	// Owned are the children of the objects, as far as their kinds are watched; nil if no handler asks for any.
	Owned *owned.Children
	// StuckTimeout is how long a worker may be stuck before the process is unhealthy: a handler that goes on after its
	// timeout, or all workers of a kind while objects wait. Zero is DefaultStuckTimeout, negative is for ever.
	StuckTimeout time.Duration
	// ScanOnce finds out once what the selectors mean, when the API server answers for the first time: no CRDs are
	// watched, and kinds that come, change or go later are not noticed. Nor are namespaces listed: of these, only those
	// are served that are named in full. Kopf: scanning.disabled.
	ScanOnce bool
	// Watching says how resources and CRDs are watched.
	Watching Watching
	// RequestTimeout is how long a request of the engine may take that is no watch; of several attempts, each. Negative
	// is no limit. Zero is 10 seconds for writes, as a worker waits for them, and for documents of discovery, and 5
	// minutes for lists. Kopf: networking.request_timeout.
	RequestTimeout time.Duration
	// Started are the keys and values of the log line at the start.
	Started []any
	// Beside begins what runs beside the operator, from Begin on and before the operator is ready, and gives the rest
	// of it. Its context ends when the last handler has returned, and then the rest is waited for. Nil does nothing.
	Beside func(ctx context.Context) (rest func())
	// Gate pauses the operator; nil never does.
	Gate *Gate
	// NeedsGate reports whether the Gate may ever be closed. It is asked once, when the controllers start, so that
	// objects do not pass through a gate that is always open. Nil is true.
	NeedsGate func() bool
	// Forget is told of every object that is gone, when its handlers have been told, maybe more than once; nil is not.
	// It must be quick.
	Forget func(uid types.UID)
	// EveryReplica has the operator begin and end, and keep its indices filled, in every process from the start of the
	// manager, also while it is paused or another process leads: not only its controllers need that. What is indexed is
	// listed again when the controllers start, and when they stop, and watched once at any other time. Every process
	// looks for the resources of all handlers, and the one that leads does so twice.
	EveryReplica bool
	// Filled is called once, when the operator has begun and all of its indices are filled, with none at once; nil is
	// not.
	Filled func()
	// APIBackoffs are the delays between attempts of one request of the engine; none makes one attempt.
	APIBackoffs []time.Duration
	// ObeyRetryAfter takes the API server's own delay even if it is shorter than the backoff.
	ObeyRetryAfter bool
	// NoPosting posts no Kubernetes events: handlers may, but nothing comes of it.
	NoPosting bool
	// Posting says how Kubernetes events are posted; without a component, it is Name.
	Posting Posting
	// Begin is called first of all, where and when the operator runs, before anything is watched. It gives the options
	// that count from then on; an error ends the manager. Nil is for options that do not change.
	Begin func(ctx context.Context) (Options, error)
	// End is called last of all, when the last handler has returned, if Begin has succeeded, and if the manager waits
	// for it: it does not when the lease of the leader is lost. The context has ended. Nil is not called.
	End func(ctx context.Context) error
	// Fence tells when the manager does not wait for the operator any more; nil has SetupWithManager make one.
	Fence *Fence
	// Health is told how the operator is; nil has SetupWithManager make one.
	Health *health.Health
	// Metrics is where the metrics are registered; nil measures nothing.
	Metrics prometheus.Registerer
	// Journal remembers what is decided; nil is none.
	Journal *journal.Journal
}

// newPoster is what posts Kubernetes events.
func (o Options) newPoster(client posting.Client, measured *metrics.Operator) *posting.Poster {
	how := o.Posting
	how.Component = cmp.Or(how.Component, o.Name)
	how.Count = func(outcome posting.Outcome) { measured.Posted(string(outcome)) }
	return posting.New(client, how)
}

// posterFor is what handlers post to.
func (o Options) posterFor(poster *posting.Poster) handlers.Poster {
	if o.NoPosting {
		return posting.Silent{}
	}
	if o.Posting.Loggers {
		return posting.LinePoster{Poster: poster}
	}
	return poster
}

// selectors are those of the registrations, each once, in their order.
func (o Options) selectors() (all []discovery.Selector) {
	for _, r := range o.Registrations {
		if !slices.Contains(all, r.Selector) {
			all = append(all, r.Selector)
		}
	}
	return all
}

// indexes tells whether there are indices of what the selector means.
func (o Options) indexes(selector discovery.Selector) bool {
	return slices.ContainsFunc(o.Registrations, func(r Registration) bool {
		return r.Selector == selector && r.Handler.Index != nil
	})
}

// Places are where the operator remembers what it handled, on every object, as JSON pointers, sorted: no one else may
// write there, neither a handler's record nor another operator. What storages keep elsewhere is not among them. It is
// an error if a storage cannot even store an empty essence.
func (o Options) Places() ([]string, error) {
	patch := map[string]any{}
	for _, kept := range []diffbase.Storage{o.Diffbase, changes.NewInterim(o.Prefix, "")} {
		if kept == nil {
			continue
		}
		if err := storages.ProbeDiffbase(patch, kept); err != nil {
			return nil, err
		}
	}
	if o.BoundTo != "" {
		if err := storage.Annotate(patch, []string{o.BoundTo}, ""); err != nil {
			return nil, err
		}
	}
	leaves := storage.Leaves(patch)
	// Every storage of a prefix writes its marker; it means nothing else.
	maps.DeleteFunc(leaves, func(_ string, value any) bool { return value == keys.ManagedValue })
	return slices.Sorted(maps.Keys(leaves)), nil
}
