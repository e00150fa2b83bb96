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

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/internal/metrics"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/internal/storages"
	"github.com/kopf-runtime/kopf-runtime/internal/transport"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/health"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/posting"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// DefaultEventsPerSecond is the sustained rate of posted Kubernetes events.
const DefaultEventsPerSecond = posting.DefaultPerSecond

// Registration is one handler and the selector of the resources that it handles.
type Registration struct {
	Selector discovery.Selector
	Handler  *handlers.Handler
}

// Settings are the settings that the subpackages share.
type Settings = kind.Settings

// Digests selects the values that are stored on the objects as digests only.
type Digests = kind.Digests

// Posting configures how Kubernetes events are posted.
type Posting = posting.Options

// Fence refuses all requests of an operator once the manager has stopped waiting for it.
type Fence = transport.Fence

// NewFence makes the fence of an operator in the manager, for its Options. SetupWithManager adds it to the manager.
func NewFence(m manager.Manager) *Fence { return transport.NewFence(m) }

// Options describe one operator. Functions that are nil are not called.
type Options struct {
	Settings
	// Registrations are the handlers, in the order of registration.
	Registrations []Registration
	// Namespaces restrict the operator; none means the whole cluster. Cluster-scoped objects are served in any case.
	Namespaces namespaces.Patterns
	// MatchingNamespaces is kept up to date with the namespaces that match Namespaces, also in a pause, from Begin on;
	// if nil, SetupWithManager makes one. A matching namespace is served as soon as it is in Admitted as well; a nil
	// Admitted admits all.
	MatchingNamespaces, AdmittedNamespaces *namespaces.LiveNamespaces
	// Dependents must be released before the finalizer of an object is removed; nil if there are none.
	Dependents changes.Dependents
	// Children has the children of the objects, as far as their kinds are watched; nil if no handler needs any.
	Children *owned.Children
	// StuckTimeout is how long a worker may be stuck before the process is unhealthy. A worker is stuck if its handler
	// continues after its timeout, or if all workers of a kind are busy while objects wait. Zero is
	// DefaultStuckTimeout, negative means without a limit.
	StuckTimeout time.Duration
	// ScanOnce resolves the selectors once, when the API server answers for the first time. CRDs are not watched, so
	// kinds that are added, changed or removed later are not noticed. Namespaces are not listed either: only those that
	// are named in full are served. Kopf: scanning.disabled.
	ScanOnce bool
	// Watching configures the watches of resources and CRDs.
	Watching Watching
	// RequestTimeout limits each request of the engine that is not a watch; with retries, each attempt. Negative is no
	// limit. Zero is 10 seconds for writes, because a worker waits for them, and for discovery documents, and 5 minutes
	// for lists. Kopf: networking.request_timeout.
	RequestTimeout time.Duration
	// StartLogValues are additional keys and values of the log line at the start.
	StartLogValues []any
	// StartExtraWork starts additional work of the operator, after Begin and before the operator is ready, and returns
	// the function that runs it. The context ends when the last handler has returned; the operator then waits for the
	// function to return.
	StartExtraWork func(ctx context.Context) (rest func())
	// Gate pauses the operator; a nil Gate is always open.
	Gate *Gate
	// Ranges are those of this process, if the replicas of the operator share the objects. Each has a gate of its own
	// in Gate, which is set then. Nil means all objects.
	Ranges *sharding.OwnRanges
	// Sharing returns the state of the ranges of all replicas; nil if they do not share the objects.
	Sharing func() sharding.Status
	// Standby returns why this process handles no objects, unless peers have paused it. Otherwise it returns "".
	Standby func() string
	// NeedsGate reports whether the Gate may ever be closed. It is called once, when the controllers start; if it
	// returns false, objects skip the gate. Nil means true.
	NeedsGate func() bool
	// OnGone is called for every deleted object after its handlers were called, possibly more than once. It must be
	// quick.
	OnGone func(uid types.UID)
	// RunInEveryReplica runs Begin and End and keeps the indices filled in every process, from the start of the manager
	// on, also while the operator is paused or another process leads. It is for users of the indices other than the
	// controllers, such as webhooks. Indexed resources are listed again when the controllers start and when they stop;
	// only one watch of them runs at a time. Every process resolves the selectors of all handlers, and the leader does
	// so twice.
	RunInEveryReplica bool
	// OnIndicesFilled is called once, when Begin has returned and all indices are filled; without indices, after Begin.
	OnIndicesFilled func()
	// APIBackoffs are the delays between the attempts of one request of the engine; none means a single attempt.
	APIBackoffs []time.Duration
	// ObeyRetryAfter uses the delay of a Retry-After header even if it is shorter than the backoff.
	ObeyRetryAfter bool
	// NoPosting discards the Kubernetes events that handlers post.
	NoPosting bool
	// Posting configures how Kubernetes events are posted. The default component is Name.
	Posting Posting
	// Begin is called first, where and when the operator runs, before anything is watched. It returns the options that
	// apply from then on; an error ends the manager. Nil keeps the options.
	Begin func(ctx context.Context) (Options, error)
	// End is called last, after the last handler has returned, with a context that has ended. It is not called if Begin
	// has failed, or if the manager does not wait for the operator, such as after it lost the lease of the leader.
	End func(ctx context.Context) error
	// Fence refuses requests once the manager does not wait for the operator; if nil, SetupWithManager makes one.
	Fence *Fence
	// Health collects the state of the operator for the checks; if nil, SetupWithManager makes one.
	Health *health.Health
	// Metrics is the registry of the metrics; nil disables them.
	Metrics prometheus.Registerer
	// Journal records the decisions about objects; nil records nothing.
	Journal *journal.Journal
}

// newPoster makes the queue that posts Kubernetes events and counts them in the metrics.
func (o Options) newPoster(client posting.EventClient, measured *metrics.OperatorMetrics) *posting.QueuePoster {
	how := o.Posting
	how.Component = cmp.Or(how.Component, o.Name)
	how.Count = func(outcome posting.EventOutcome) { measured.CountPosted(string(outcome)) }
	return posting.New(client, how)
}

// posterFor returns the poster for the handlers. Only a LinePoster lets the adapters post log lines as events, too.
func (o Options) posterFor(poster *posting.QueuePoster) handlers.EventPoster {
	if o.NoPosting {
		return posting.Silent{}
	}
	if o.Posting.Loggers {
		return posting.LinePoster{QueuePoster: poster}
	}
	return poster
}

// distinctSelectors returns the selectors of the registrations, each once, in the order of registration.
func (o Options) distinctSelectors() (all []discovery.Selector) {
	for _, r := range o.Registrations {
		if !slices.Contains(all, r.Selector) {
			all = append(all, r.Selector)
		}
	}
	return all
}

// hasIndices reports whether any index of all objects is registered with the selector.
func (o Options) hasIndices(selector discovery.Selector) bool {
	return slices.ContainsFunc(o.Registrations, func(r Registration) bool {
		return r.Selector == selector && o.indexesAll(r.Handler)
	})
}

// wholeIndices returns the handlers that fill an index of all objects. Others fill one of the objects in the own
// ranges.
func (o Options) wholeIndices(all []*adapters.HandlerChain) (found []*adapters.HandlerChain) {
	for _, h := range all {
		if o.indexesAll(h.Description) {
			found = append(found, h)
		}
	}
	return found
}

// indexesAll reports whether the handler fills an index of all objects.
func (o Options) indexesAll(h *handlers.Handler) bool {
	return h.Index != nil && (o.Ranges == nil || !h.Index.ByRange)
}

// StoragePointers returns the positions at which the operator stores its memory on every object, as sorted JSON
// pointers. No handler's record and no other operator may write there. Positions that storages add only for some
// objects are not included. A storage that cannot store an empty essence is an error.
func (o Options) StoragePointers() ([]string, error) {
	// Store an empty essence into an empty patch: the leaves of the patch are the positions.
	patch := map[string]any{}
	for _, kept := range []diffbase.Storage{o.Diffbase, changes.NewInterimStorage(o.Prefix, "")} {
		if kept == nil {
			continue
		}
		if err := storages.ProbeDiffbase(patch, kept); err != nil {
			return nil, err
		}
	}
	if o.BoundTo != "" {
		if err := storage.SetAnnotations(patch, []string{o.BoundTo}, ""); err != nil {
			return nil, err
		}
	}
	leaves := storage.PatchLeaves(patch)
	// Every storage of a prefix writes the same marker, so sharing its position is not a conflict.
	maps.DeleteFunc(leaves, func(_ string, value any) bool { return value == keys.ManagedValue })
	return slices.Sorted(maps.Keys(leaves)), nil
}

// The defaults of [Watching] and of [Options.StuckTimeout]. The inactivity timeout is longer than the interval of the
// API server's bookmarks, about a minute, so an idle watch is not interrupted.
const (
	DefaultReconnectBackoff  = transport.DefaultReconnectBackoff
	DefaultInactivityTimeout = transport.DefaultInactivityTimeout
	DefaultStuckTimeout      = health.DefaultStuckTimeout
)

// Watching configures the watches of an operator. Zeros are the defaults, negative values mean no limit.
type Watching = transport.WatchLimits

// unlimited replaces "no limit" in code that needs a number, because it sets a deadline for each request.
const unlimited = 365 * 24 * time.Hour

// requestTimeout returns the limit of one attempt of a request with the given default.
func (o Options) requestTimeout(otherwise time.Duration) time.Duration {
	if o.RequestTimeout < 0 {
		return unlimited
	}
	return cmp.Or(o.RequestTimeout, otherwise)
}

// writeTimeout returns the limit of a write: the time of all attempts and of the delays between them.
func (o Options) writeTimeout() time.Duration {
	timeout := o.requestTimeout(kind.DefaultWriteTimeout)
	for _, delay := range o.APIBackoffs {
		timeout += delay + max(0, o.RequestTimeout)
	}
	return timeout
}
