package controller

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/health"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/memory"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

// ErrRestarting and ErrRemoved are the causes with which the context of a controller ends. After ErrRestarting another
// controller serves the same objects; after ErrRemoved no controller does.
var (
	ErrRestarting = errors.New("the controller of the kind is restarting")
	ErrRemoved    = errors.New("the kind is not served any more")
)

// Controller handles the objects of one resource in one scope: one namespace, or the whole cluster, and there one range
// of the objects, or all of them. It has its own cache and queue. [Controller.runWithRestarts] restarts it after a
// failure; "one run" in the comments below is the time between two restarts.
type Controller struct {
	deps *Dependencies
	// turn is the period in which this controller may act; a pause or a new leader ends it.
	turn     Turn
	resource discovery.Resource
	// scope names the kind, the namespace and the range; memory, health and readiness are kept by scope.
	scope  memory.KindScope
	health *health.WatchedScope
	// reachability remembers which failures of lists and watches were logged.
	reachability reachability
	journal      *journal.KindJournal
	log          logr.Logger
	handlers     adapters.Families
	// the Go type that all handlers decode into, see [commonDecodeType]; nil if their types differ
	decodeType reflect.Type
	selector   labels.Selector // selects the objects that are watched; nil selects all

	// The parts that a pass uses. objects, background, indexer and unhandled belong to the memory of the scope: they
	// outlive this controller, and the next one for the same scope continues with them.
	workers *workers
	// events delivers raw events, changes runs change handlers, and disappeared calls deletion handlers without a
	// finalizer.
	events             *eventHandling // nil without event handlers
	changes            *changes.ChangeHandling
	disappearedObjects *disappearedObjects // nil without optional deletion handlers
	objects            *memory.Objects
	background         *background.Supervisor
	indexer            *indexes.Indexer  // nil without index functions
	feed               *indexes.Feed     // of one run; nil without index functions
	unhandled          *memory.Unhandled // nil without metrics or change handlers
	// rechecks notify of changes outside of the objects that a filter reads.
	rechecks  []handlers.Notifier
	ownership *ownership // nil if the objects are neither parents nor children of other objects

	// The informer of the current run, and its queue. The queue is replaced by each run, and is nil before the first.
	store            toolscache.Store
	hasSynced        func() bool   // reports whether store is complete
	lastSyncVersion  func() string // the resource version of the informer's last list or watch event
	queue            atomic.Pointer[source.PriorityQueue]
	passes           sync.WaitGroup   // the passes that are running
	unwrittenObjects unwrittenObjects // of one run: the objects with results that are not stored yet
	passContext      context.Context  //nolint:containedctx // the context of the passes of one run, which may end later
}

// Turn is the period in which controllers may act, until the next pause.
type Turn struct {
	// Gate permits passes to begin; a nil gate always does.
	Gate kind.WorkGate
	// Takeovers is how many times another process may have acted before.
	Takeovers int
	// Readiness blocks handlers until the indices are filled; nil does not block.
	Readiness *indexes.Readiness
	// FollowPauses serves one scope whenever it may be served, and calls one of the other functions while it may not,
	// until the context ends. It is for operators that pause by namespace or by range. If nil, the scope is served all
	// the time.
	FollowPauses func(
		ctx context.Context, scope memory.KindScope, serve ServeScope,
		namespacePaused, rangePaused func(context.Context),
	)
}

// cachedUID returns the uid of the object in the cache, or an empty uid if it is not cached.
func (c *Controller) cachedUID(key types.NamespacedName) types.UID {
	if cached := c.cachedObject(key); cached != nil {
		return cached.GetUID()
	}
	return ""
}

// cachedObject returns the object from the cache, or nil. The object is shared: callers must not modify it.
func (c *Controller) cachedObject(key types.NamespacedName) *compact.CachedObject {
	// The lookup cannot fail with the standard indexer, and the cache contains no other type.
	found, _, _ := c.store.GetByKey(toolscache.NewObjectName(key.Namespace, key.Name).String())
	object, _ := found.(*compact.CachedObject)
	return object
}

// priorityOf returns the priority of deletions if the object is being deleted or gone, and the other one otherwise.
func priorityOf(cached *compact.CachedObject, otherwise int) int {
	if cached == nil || cached.IsDeleting() {
		return source.PriorityDeletion
	}
	return otherwise
}

// isWatchOnly reports whether the kind is only watched for the handlers of other kinds.
func (c *Controller) isWatchOnly() bool { return c.ownership != nil && c.ownership.isWatchOnly }

// pauseTimeout returns how long running handlers may go on in a pause.
func (c *Controller) pauseTimeout() time.Duration {
	if c.scope.Range.IsWhole() {
		return c.deps.Settings.PauseTimeout
	}
	return min(c.deps.Settings.PauseTimeout, maxRangeGrace)
}

// maxRangeGrace limits Settings.PauseTimeout for the objects of a range. A replica releases a busy range 15 seconds
// after it has closed its gate: the rest is for handlers that return late, and for their outcomes.
const maxRangeGrace = 10 * time.Second

// isPaused reports whether the gate of this turn is closed.
func (c *Controller) isPaused() bool { return c.turn.Gate != nil && !c.turn.Gate.Open() }
