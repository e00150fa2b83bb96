package controller

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/health"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/resync"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/memory"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/metrics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/rawclient"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/settings"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Dependencies are what the controllers of one operator share. They are not copied.
type Dependencies struct {
	// Settings are the operator's, with their defaults.
	Settings settings.Settings
	// Dependents must be released before the finalizer of an object is removed; nil if there are none.
	Dependents changes.Dependents
	// Owned are the children of the objects, as far as their kinds are watched; nil if no handler asks for any.
	Owned *owned.Children
	// Forget is called with the uid of every deleted object after its handlers, maybe more than once. It must be quick;
	// nil is not called.
	Forget func(uid types.UID)
	// Cluster is where the objects are, HTTPClient the way to it.
	Cluster    Cluster
	HTTPClient *http.Client
	// Defaults are the manager's, for its controllers.
	Defaults config.Controller
	// Log is the operator's logger.
	Log logr.Logger
	// Metrics measure the attempts, and what happens in the queues; nil measures nothing.
	Metrics *metrics.Operator
	// Writer sends the patches by way of Writes, with a client of each resource unless it has one of its own. Without
	// Writes, it takes that of the HTTPClient.
	Writer patching.Writer
	Writes *http.Client
	// Events posts Kubernetes events for the handlers.
	Events handlers.Poster
	// Journal remembers what is decided; nil is not told.
	Journal *journal.Journal
	// Memory outlives the controllers.
	Memory *memory.Registry
	// Permission gives what ends when nothing may be written any more, as others may handle the objects: the contexts
	// of handlers end at once then. It is that of one namespace. Nil is never.
	Permission func(namespace string) context.Context
	// Health is told how the controllers are; nil is not.
	Health *health.Health
	// Outage logs when the API server cannot be reached.
	Outage *Outage
	// Server has the schemas of the kinds whose objects tell of their handlers; nil has none.
	Server discovery.Getter
	// Resync is requested when a kind is not found where it was.
	Resync resync.Requester
	// Exiting is closed when the operator exits, be it paused or not. Nil never is.
	Exiting <-chan struct{}
	// Abandoned is closed when nobody waits for the end of handlers any more: their contexts end at once. Nil never is.
	Abandoned <-chan struct{}

	acceptances sync.Map // how kinds take conditions, by their names
	clients     sync.Map // of the writer, by their resources

	dropped sync.Map // fields that the API server does not keep, and that were told
}

// Cluster is what the controllers need of a manager.
type Cluster interface {
	GetConfig() *rest.Config
	GetScheme() *runtime.Scheme
}

// permission ends with that to write.
func (d *Dependencies) permission(namespace string) context.Context {
	if d.Permission == nil {
		return context.Background()
	}
	return d.Permission(namespace)
}

// writerFor is the operator's writer, with an eye on what the API server drops without a word. Kinds of the server's
// own leave zeros out, and have fields that are only written, so nothing is said of theirs.
func (d *Dependencies) writerFor(r discovery.Resource) *patching.Writer {
	w := d.Writer
	if w.Client == nil {
		w.Client = d.clientFor(r.GroupVersion().WithResource(r.Plural))
	}
	if custom(r.Group) {
		w.Observer = &droppedFieldLogger{kind: r.GroupVersionKind, logged: &d.dropped}
	}
	return &w
}

// clientFor is one for all writers of a resource, so that limits of the configuration hold for them together.
func (d *Dependencies) clientFor(r schema.GroupVersionResource) patching.Client {
	known, _ := d.clients.LoadOrStore(r, rawclient.New(d.Cluster.GetConfig(), cmp.Or(d.Writes, d.HTTPClient), r))
	client, _ := known.(patching.Client)
	return client
}

// custom tells whether the group is that of a CRD, as far as names tell.
func custom(group string) bool {
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
}

// droppedFieldLogger says which fields the API server does not keep.
type droppedFieldLogger struct {
	kind   schema.GroupVersionKind
	logged *sync.Map // fields of kinds, each of which is worth one line in the life of the operator
}

var _ patching.Observer = (*droppedFieldLogger)(nil)

// Dropped is called by the writer.
func (l *droppedFieldLogger) Dropped(ctx context.Context, fields []diff.Path) {
	for _, field := range fields {
		if _, known := l.logged.LoadOrStore(l.kind.String()+" "+field.String(), true); !known {
			logging.Warn(logf.FromContext(ctx), "API server dropped a field that the schema of its CRD does not have. "+
				"Add it there, or set x-kubernetes-preserve-unknown-fields beside it; logged once",
				"field", field.String(), "resource", l.kind.String())
		}
	}
}
