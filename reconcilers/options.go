package reconcilers

import (
	"cmp"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/repeating"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// DefaultWorkers is how many objects of one kind are handled at once. Handlers may sleep, so there are plenty.
const DefaultWorkers = 100

// DefaultErrorDelays space the passes over an object while the framework fails for it. The last one repeats.
// Kopf: queueing.error_delays.
var DefaultErrorDelays = []time.Duration{
	1 * time.Second, 1 * time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second, 8 * time.Second,
	13 * time.Second, 21 * time.Second, 34 * time.Second, 55 * time.Second, 89 * time.Second, 144 * time.Second,
	233 * time.Second, 377 * time.Second, 610 * time.Second,
}

// Registration is one handler for the resources that a selector means.
type Registration struct {
	Selector Selector
	Handler  *handlers.Handler
}

// Options describe one operator.
type Options struct {
	// Name is the operator's: of its controllers, its field manager, its metrics.
	Name string
	// Prefix is the domain of its annotations.
	Prefix string
	// Finalizer is the full name of its finalizer.
	Finalizer string
	// BoundTo is the annotation that binds the memory to its object; empty trusts all memory.
	BoundTo string
	// Diffbase and Progress store the memory.
	Diffbase diffbase.Storage
	Progress progress.Storage
	// CompactSubs leaves out the records of sub-handlers that succeeded: that of their handler names them, which nobody
	// but this framework can read.
	CompactSubs bool
	// Digests says what is remembered without its values, in addition to what the handlers say.
	Digests Digests
	// Registrations are the handlers, in the order of registration.
	Registrations []Registration
	// Namespaces restrict the operator; none is the whole cluster.
	Namespaces []string
	// Workers is how many objects of one kind are handled at once, in all its namespaces; zero is DefaultWorkers. Of
	// two and more, some are kept for deletions, and as many for the rest.
	Workers int
	// Backoff is the default delay after ordinary errors of handlers; zero is 60 seconds.
	Backoff time.Duration
	// Lifecycle picks from the handlers that are due.
	Lifecycle execution.Lifecycle
	// Checkpoint is how long the outcome of a handler may wait for its write while the next one is running; zero is
	// changes.DefaultCheckpoint.
	Checkpoint time.Duration
	// ErrorDelays are those of the framework's errors; nil is DefaultErrorDelays. With an empty list, an object that
	// failed waits for its next event.
	ErrorDelays []time.Duration
	// Ticks is how many ticks of timers run at once, in all kinds; zero is background.DefaultTicks.
	Ticks int
	// Daemons is how many daemons run at once; zero is any number.
	Daemons int
	// CancelPolling is how often background handlers are mentioned that do not end; zero is background.DefaultPolling.
	CancelPolling time.Duration
	// LeaveFinalizers leaves the finalizer of an object that was held for a background handler which has ended by
	// itself, until the next event of the object: Kopf does so, and so do its recorded runs. By default, it is removed
	// at once.
	LeaveFinalizers bool
	// InstantExit is how long background handlers may take to end at the first word, before anything else is done about
	// it; zero is background.DefaultInstantExit.
	InstantExit time.Duration
	// Gate pauses the operator; nil never does.
	Gate *Gate
	// Forget is told of every object that is gone, when its handlers have been told, maybe more than once; nil is not.
	// It must be quick.
	Forget func(uid types.UID)
	// APIBackoffs are the delays between attempts of one request of the engine; none makes one attempt.
	APIBackoffs []time.Duration
	// ObeyRetryAfter takes the API server's own delay even if it is shorter than the backoff.
	ObeyRetryAfter bool
	// Metrics is where the metrics are registered; nil measures nothing.
	Metrics prometheus.Registerer
}

func (o Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return DefaultWorkers
}

// writeTimeout has time for all attempts.
func (o Options) writeTimeout() time.Duration {
	timeout := changes.DefaultWriteTimeout
	for _, delay := range o.APIBackoffs {
		timeout += delay
	}
	return timeout
}

// repeating is the connection with the attempts that are wanted.
func (o Options) repeating(connection *http.Client) *http.Client {
	if len(o.APIBackoffs) == 0 {
		return connection
	}
	own := *connection
	own.Transport = &repeating.Transport{
		Next: cmp.Or(connection.Transport, http.DefaultTransport), Backoffs: o.APIBackoffs, Obey: o.ObeyRetryAfter,
	}
	return &own
}

func (o Options) errorDelays() []time.Duration {
	if o.ErrorDelays == nil {
		return DefaultErrorDelays
	}
	return o.ErrorDelays
}

// scopes are the namespaces to be watched, one cache each; the empty one is the whole cluster.
func (o Options) scopes(namespaced bool) []string {
	if !namespaced || len(o.Namespaces) == 0 {
		return []string{""}
	}
	return o.Namespaces
}
