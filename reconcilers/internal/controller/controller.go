package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/health"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/memory"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/requirements"
)

// restartPause is how long a controller that failed as a whole waits before it starts anew.
const restartPause = 10 * time.Second

// These are the causes of the end of a controller's context: its objects are served by another one from now on, or by
// none.
var (
	ErrRestarting = errors.New("the controller of the kind is restarting")
	ErrRemoved    = errors.New("the kind is not served any more")
)

// store is the part of an informer's index that is read.
type store interface {
	GetByKey(key string) (item any, exists bool, err error)
	List() []any
}

// Controller handles the objects of one resource in one scope, with a cache and a queue of its own.
type Controller struct {
	deps     *Dependencies
	turn     Turn
	resource discovery.Resource
	scope    memory.Scope
	health   *health.Scope
	reach    reach
	journal  *journal.Kind
	log      logr.Logger
	handlers adapters.Families
	reads    reflect.Type    // see typeOf
	selector labels.Selector // of the objects that are watched; nil is all

	// What a pass uses.
	workers     *workers
	events      *eventHandling // nil without handlers of events
	changes     *changes.Handling
	disappeared *disappeared // nil without handlers for such objects
	objects     *memory.Objects
	background  *background.Supervisor
	indexer     *indexes.Indexer  // nil if there is nothing to be indexed
	feed        *indexes.Feed     // of one run
	unhandled   *memory.Unhandled // nil without metrics or change handlers
	rechecks    []handlers.Notifier
	owned       *owning // nil if the kind has to do with children of others, or of its own

	store     store
	hasSynced func() bool   // whether the store is complete
	version   func() string // that the informer has arrived at
	queue     atomic.Pointer[source.PriorityQueue]
	passes    sync.WaitGroup  // that are running
	unwritten unwritten       // of one run
	passing   context.Context //nolint:containedctx // the context of the passes of one run, which may end later
}

func newController(
	deps *Dependencies, turn Turn, r discovery.Resource, namespace string, own []*adapters.Handler, w *workers,
) *Controller {
	scope := memory.Scope{Resource: r.GroupResource(), Namespace: namespace}
	kept := deps.Memory.Of(scope)
	families := adapters.ByFamily(own)
	c := &Controller{
		deps: deps, turn: turn, resource: r, scope: scope, health: deps.Health.Scope(scope.String()),
		log: logging.OfKind(deps.Log, r.GroupVersionKind), handlers: families,
		journal: deps.JournalOf(r, own), reads: typeOf(own),
		workers: w, rechecks: notifiers(own), objects: kept.Objects, background: kept.Background,
		disappeared: newDisappeared(deps.Settings.KopfDeletions, families.Changing),
	}
	of := c.newKind()
	c.changes = newChanges(deps, of, own)
	c.reach.again = func() { c.log.Info("Listing and watching a resource again", "handlers", c.handlerIDs()) }
	if c.events = newEventHandling(deps, of, families.Watching); c.events != nil {
		c.changes.Writer = notingWriter{of.Writer, c.events.handling.Loops}
	}
	if len(families.Spawning) > 0 {
		c.changes.Background = c.background
	}
	c.owned = c.newOwning(of, families)
	if len(families.Indexing) > 0 {
		c.indexer = kept.Indexer
	}
	if len(families.Changing) > 0 && deps.Metrics != nil {
		c.unhandled = kept.Unhandled
	}
	if deps.Forget == nil || c.owned != nil && c.owned.idle { // it needs the end of all handled objects
		c.selector = requirements.Shared(descriptionsOf(own), (*handlers.Handler).Watched)
	}
	return c
}

// beginMemory is for a controller that handles objects from now on.
func (c *Controller) beginMemory() {
	c.objects.Begin(slices.ContainsFunc(c.handlers.Changing, func(h *adapters.Handler) bool {
		return h.Description.Initial
	}))
}

// run serves the kind until the context ends. A failure of the kind ends nothing else.
func (c *Controller) run(ctx context.Context) {
	ctx = logf.IntoContext(ctx, c.log)
	defer c.health.End()
	for ctx.Err() == nil {
		err := c.runOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		c.log.Error(err, "Controller failed; restarting it", "after", restartPause.String())
		select {
		case <-ctx.Done():
		case <-time.After(restartPause):
		}
	}
}

// runOnce runs an informer, and the controller on it, until the controller fails or the context ends.
func (c *Controller) runOnce(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.health.Begin()
	if c.indexer != nil {
		c.feed = c.indexer.Begin(c.indexing())
		defer c.feed.End()
	}
	informer, err := c.inform()
	if err != nil {
		return err
	}
	var informing sync.WaitGroup
	informing.Go(func() { informer.RunWithContext(ctx) })
	err = c.control(ctx, informer)
	cancel(nil)
	informing.Wait()
	return err
}

// control runs the controller on an informer until the context ends.
func (c *Controller) control(ctx context.Context, informer toolscache.SharedIndexInformer) error {
	defer c.beginBackground(ctx)()
	defer c.owned.begin(c.enqueueOwner)()
	defer c.beginRechecks(ctx)()
	queued, err := c.newQueued()
	if err != nil {
		return fmt.Errorf("making the controller of %s: %w", c.resource.GroupVersionKind, err)
	}
	events := source.Events{Watcher: c}
	if departing := c.departures(); departing != nil {
		defer departing.begin(ctx)()
		events.Doubts = departing
	}
	informed := &source.Informed{Informer: informer, Events: events, Listed: c.synced}
	if err := queued.Watch(informed); err != nil {
		return fmt.Errorf("watching %s: %w", c.resource.GroupVersionKind, err)
	}
	defer c.endRun(ctx)
	c.unwritten.begin()
	endPasses := c.beginPasses(ctx)
	err = queued.Start(ctx)
	c.writeLeft()
	c.passes.Wait() // the controller itself has only handed them over
	endPasses()
	return err
}
