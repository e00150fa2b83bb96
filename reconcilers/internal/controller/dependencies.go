package controller

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/internal/metrics"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/health"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/memory"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Dependencies holds the parts that the controllers of one operator share. It must not be copied.
type Dependencies struct {
	// Settings are those of the operator, with defaults applied.
	Settings kind.Settings
	// Dependents must be released before the finalizer of an object is removed; nil if there are none.
	Dependents changes.Dependents
	// Children tracks the children of the objects, as far as their kinds are watched; nil if no handler needs children.
	Children *owned.Children
	// Forget is called with the uid of every deleted object after its handlers, possibly more than once. It must be
	// quick. It may be nil.
	Forget func(uid types.UID)
	// ForgetDelay is the time from the deletion of an object until watches of all objects call Forget, if the replicas
	// share the objects: the controller of its range may still have to call handlers. Zero is none.
	ForgetDelay time.Duration
	// Cluster has the configuration of the API server, and HTTPClient sends the requests, except for writes if Writes
	// is set.
	Cluster    ManagerCluster
	HTTPClient *http.Client
	// Defaults are the manager's defaults for controllers.
	Defaults config.Controller
	// Log is the operator's logger.
	Log logr.Logger
	// Metrics measure attempts and queues; nil measures nothing.
	Metrics *metrics.OperatorMetrics
	// Writer sends patches through Writes, with one client for each resource unless the writer brings its own client.
	// If Writes is nil, the HTTPClient is used.
	Writer          patching.PatchWriter
	WriteHTTPClient *http.Client
	// Events posts Kubernetes events for the handlers.
	Events handlers.EventPoster
	// Journal records decisions for explanations; nil records nothing.
	Journal *journal.Journal
	// Memory keeps the state of objects, and outlives the controllers.
	Memory *memory.Registry
	// Permission returns a context for a namespace and a range that ends when the operator must not write there any
	// more, because others may handle the objects. The contexts of handlers end at the same time. Nil permits writing
	// for the whole run.
	Permission func(namespace string, of sharding.Range) context.Context
	// Ranges are those of this process, if the replicas of the operator share the objects; nil means all objects.
	Ranges *sharding.OwnRanges
	// Health receives the state of the controllers; nil receives nothing.
	Health *health.Health
	// Outage logs when the API server becomes unreachable or reachable.
	Outage *Outage
	// Server provides the schemas of kinds whose handlers report conditions; nil provides none.
	Server discovery.Getter
	// RequestResync requests a new discovery when a kind is not found any more.
	RequestResync func()
	// Exiting is closed when the operator exits, paused or not. A nil channel means that it never exits.
	Exiting <-chan struct{}
	// Abandoned is closed when the manager does not wait for the operator any more: the contexts of handlers then end
	// at once. Nil is never closed.
	Abandoned <-chan struct{}

	acceptances sync.Map // *acceptance by schema.GroupVersionKind
	clients     sync.Map // patching.Client by schema.GroupVersionResource

	loggedForeignKinds  sync.Map // schema.GroupResource: kinds that the API server does not filter by ranges
	loggedDroppedFields sync.Map // kind and field: fields that the API server dropped and that were logged
}

// ManagerCluster is the part of a manager that the controllers use.
type ManagerCluster interface {
	GetConfig() *rest.Config
	GetScheme() *runtime.Scheme
}

// writePermission returns a context that ends together with the permission to write to the scope.
func (d *Dependencies) writePermission(scope memory.KindScope) context.Context {
	if d.Permission == nil {
		return context.Background()
	}
	return d.Permission(scope.Namespace, scope.Range)
}

// writerFor returns the writer for one resource. For CRDs, it also logs fields that the API server drops silently. For
// built-in kinds it does not: they omit zero values and have write-only fields, so a missing field is normal.
func (d *Dependencies) writerFor(r discovery.Resource) *patching.PatchWriter {
	w := d.Writer
	if w.Client == nil {
		w.Client = d.clientFor(r.GroupVersion().WithResource(r.Plural))
	}
	if isCustomGroup(r.Group) {
		w.OnDropped = func(ctx context.Context, fields []diff.Path) { d.logDropped(ctx, r.GroupVersionKind, fields) }
	}
	return &w
}

// clientFor returns the client that all writers of a resource share, so that rate limits of the configuration apply to
// them together.
func (d *Dependencies) clientFor(r schema.GroupVersionResource) patching.PatchClient {
	// A client that loses the race is dropped. It has no connections of its own.
	own := patching.NewObjectClient(d.Cluster.GetConfig(), cmp.Or(d.WriteHTTPClient, d.HTTPClient), r)
	known, _ := d.clients.LoadOrStore(r, own)
	client, _ := known.(patching.PatchClient)
	return client
}

// isCustomGroup reports whether the group belongs to a CRD, judged by its name alone.
func isCustomGroup(group string) bool {
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
}

// logDropped logs the fields that the API server drops, each of them once per process.
func (d *Dependencies) logDropped(ctx context.Context, kind schema.GroupVersionKind, fields []diff.Path) {
	for _, field := range fields {
		if _, known := d.loggedDroppedFields.LoadOrStore(kind.String()+" "+field.String(), true); !known {
			logging.Warn(logf.FromContext(ctx), "API server dropped a field that the schema of its CRD does not have. "+
				"Add it there, or set x-kubernetes-preserve-unknown-fields beside it; logged once",
				"field", field.String(), "resource", kind.String())
		}
	}
}

// Outage records the time for which the API server is unreachable. It is logged once for all controllers of an
// operator. The zero value is ready to use.
type Outage struct {
	mu    sync.Mutex
	since time.Time // zero while the API server answers
}

// isUnreachable reports whether the request found no server. A slow or untrusted server is a different failure, which
// may concern one kind only.
func isUnreachable(err error) bool {
	var dial *net.OpError
	var name *net.DNSError
	return errors.As(err, &dial) && dial.Op == "dial" || errors.As(err, &name)
}

// noteUnreachable records that the API server is unreachable, and logs the first such error of an outage.
func (o *Outage) noteUnreachable(log logr.Logger, err error) {
	o.mu.Lock()
	isNew := o.since.IsZero()
	if isNew {
		o.since = time.Now()
	}
	o.mu.Unlock()
	if isNew {
		log.Error(err, "API server is unreachable; handlers wait until it answers")
	}
}

// noteReachable records that the API server answers, and logs the end of an outage.
func (o *Outage) noteReachable(log logr.Logger) {
	o.mu.Lock()
	since := o.since
	o.since = time.Time{}
	o.mu.Unlock()
	if !since.IsZero() {
		log.Info("API server is reachable again", "after", time.Since(since).Round(time.Second).String())
	}
}
