package controller

import (
	"cmp"
	"context"
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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/conditions"
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
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// Dependencies are what the controllers of one operator share. They are not copied.
type Dependencies struct {
	// Settings are the operator's.
	Settings Settings
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
	// Outage logs when the API server cannot be reached; nil does not.
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

// Settings are those of the controllers of one operator. All are set: defaults are the operator's matter.
type Settings struct {
	// Name is the operator's.
	Name string
	// Prefix is the domain of the annotations, Finalizer the full name of the finalizer, and BoundTo the annotation
	// that binds the memory to its object; an empty one trusts all memory.
	Prefix, Finalizer, BoundTo string
	// Diffbase and Progress store the memory on the objects. CompactSubs leaves out the records of sub-handlers that
	// succeeded; KopfTexts words errors in records as Kopf does. Digests says what is remembered without its values.
	Diffbase    diffbase.Storage
	Progress    progress.Storage
	CompactSubs bool
	KopfTexts   bool
	Digests     Digests
	// Workers is how many objects of one kind are handled at once, in all its namespaces.
	Workers int
	// Backoff is the default delay after ordinary errors of handlers; zero is 60 seconds.
	Backoff time.Duration
	// Lifecycle picks from the handlers that are due.
	Lifecycle handlers.Lifecycle
	// Checkpoint is how long the outcome of a handler may wait for its write; zero is changes.DefaultCheckpoint.
	Checkpoint time.Duration
	// WriteTimeout limits one write, with all its attempts.
	WriteTimeout time.Duration
	// ExitTimeout is how long passes may go on when the operator exits, before the contexts of their handlers end.
	// PauseTimeout is the same for a pause, in which no further handler is called.
	ExitTimeout, PauseTimeout time.Duration
	// ErrorDelays are those of the framework's errors. With an empty list, an object that failed waits for its next
	// event.
	ErrorDelays []time.Duration
	// CancelPolling is how often background handlers are mentioned that do not end, InstantExit how long they may take
	// to end at the first word; zeros are the defaults of package background.
	CancelPolling, InstantExit time.Duration
	// Conditions are the types that objects tell of their handlers with, if they do.
	Conditions conditions.Types
	// Dependents are what must be released before the finalizer of an object is removed; nil if there are none.
	Dependents changes.Dependents
	// Owned are the children of the objects, as far as their kinds are watched; nil if nobody asks for any.
	Owned *owned.Children
	// LeaveFinalizers leaves the finalizer of an object that was held for a background handler which has ended by
	// itself, until the next event of the object.
	LeaveFinalizers bool
	// KopfDeletions calls deletion handlers while background handlers of the object still end, and never for objects
	// that disappear without our finalizer, as in Kopf.
	KopfDeletions bool
	// Forget is told of every object that is gone, when its handlers have been told, maybe more than once; nil is not.
	// It must be quick.
	Forget func(uid types.UID)
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
