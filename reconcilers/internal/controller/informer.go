package controller

import (
	"fmt"
	"net/http"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/transport"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/informers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
)

// syncTimeout is practically infinite. A kind that may not be listed yet must keep waiting: with a real timeout,
// controller-runtime would end the controller.
const syncTimeout = 365 * 24 * time.Hour

// newInformer creates the informer of this kind, and remembers how to read it. The wrapped client reports the health of
// the scope and outages, and makes the first list consistent.
func (c *Controller) newInformer() (toolscache.SharedIndexInformer, error) {
	way := transport.Wrap(c.deps.HTTPClient, c.health.ObserveWatches, forceConsistentList, c.trackReachability)
	informer, err := informers.New(c.deps.Cluster.GetConfig(), way, c.resource, c.informerInterest())
	if err != nil {
		return nil, err
	}
	if err := informer.SetWatchErrorHandlerWithContext(c.watchErrorHandler()); err != nil {
		return nil, fmt.Errorf("making the informer of %s: %w", c.resource.GroupVersionKind, err)
	}
	c.store, c.hasSynced, c.lastSyncVersion = informer.GetIndexer(), informer.HasSynced,
		informer.LastSyncResourceVersion
	return informer, nil
}

// informerInterest returns the smallest watch that serves all handlers. It selects by the labels that all handlers
// demand. It keeps only the metadata if no handler reads more, and only the identity of objects that are watched as
// children but are not children. It uses protobuf for kinds with only event handlers and indices whose functions have
// the Go type of the kind: other handlers would need JSON, made of the messages.
func (c *Controller) informerInterest() informers.WatchInterest {
	wanted := informers.WatchInterest{
		Namespace: c.scope.Namespace, Selector: c.selector, Range: c.scope.Range, OnForeign: c.logForeignObjects,
		MetadataOnly: c.decodeType == reflect.TypeFor[metav1.PartialObjectMetadata](),
	}
	// No handler reads objects of this kind that are not children, so only their identity is kept.
	if c.isWatchOnly() && c.ownership.lookup == nil {
		wanted.KeepsWhole = c.ownership.handling.Children.MayBeChild(c.resource.GroupKind())
	}
	if c.decodeType == nil || wanted.MetadataOnly {
		return wanted
	}
	// Protobuf is only possible if the handlers decode into the type that the scheme has for this kind.
	if kind := compact.KindOf(c.deps.Cluster.GetScheme(), c.resource.GroupVersionKind); kind.MatchesType(c.decodeType) {
		wanted.Kind = kind
	}
	return wanted
}

// newDepartureTracker returns the tracker of uncertain deletions. It returns nil without a selector, and without event
// handlers, because only these need certainty.
func (c *Controller) newDepartureTracker() *departures {
	if c.selector == nil || c.events == nil {
		return nil
	}
	lookup := informers.NewLookup(c.deps.Cluster.GetConfig(), c.deps.HTTPClient, c.resource)
	return newDepartures(lookup.CurrentUID, c.forgetUnmatchedObject, c.log)
}

// commonDecodeType returns the Go type into which all of the handlers decode the object directly. It returns nil if the
// handlers differ, or if one of them needs the object as a map.
func commonDecodeType(own []*adapters.HandlerChain) (typ reflect.Type) {
	for i, h := range own {
		switch d := h.Description; {
		case !d.ReadsText || d.Field != nil || i > 0 && d.DecodedType != typ:
			return nil
		default:
			typ = d.DecodedType
		}
	}
	return typ
}

// newQueued creates the controller of controller-runtime that serves the queue. It has only one worker, because
// Reconcile hands each request to a goroutine; the slots limit how many run.
func (c *Controller) newQueued() (controller.TypedController[source.Request], error) {
	skip := true
	options := controller.TypedOptions[source.Request]{
		Reconciler: c, MaxConcurrentReconciles: 1, SkipNameValidation: &skip, CacheSyncTimeout: syncTimeout,
		LogConstructor: c.requestLogger,
		NewQueue: func(
			_ string, limiter workqueue.TypedRateLimiter[source.Request],
		) workqueue.TypedRateLimitingInterface[source.Request] {
			waiting := source.NewQueue(c.workers.slots, limiter)
			// Enqueue needs the queue of the current run.
			c.queue.Store(waiting)
			return waiting
		},
	}
	options.DefaultFromConfig(c.deps.Defaults)
	// Handlers have their own timeouts. The context of a pass must only end when the operator exits or pauses.
	options.ReconciliationTimeout = 0
	return controller.NewTypedUnmanaged(c.deps.Settings.Name+"."+c.resource.Plural, options)
}

// forceConsistentList turns the first list of an informer into a consistent read. A reflector lists with
// resourceVersion=0 unless it can stream the list, and the API server may then answer from a stale watch cache. Such a
// list could lack the last writes of another operator that handled the object before, and handlers would run again.
func forceConsistentList(next transport.RoundTripFunc) transport.RoundTripFunc {
	return func(r *http.Request) (*http.Response, error) {
		query := r.URL.Query()
		if query.Get("resourceVersion") == "0" {
			query.Del("resourceVersion")
			if query.Get("sendInitialEvents") == "" { // without a resource version, this parameter is invalid
				query.Del("resourceVersionMatch")
			}
			// A RoundTripper must not modify the request of its caller.
			r = r.Clone(r.Context())
			r.URL.RawQuery = query.Encode()
		}
		return next(r)
	}
}
