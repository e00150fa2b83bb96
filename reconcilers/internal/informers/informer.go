package informers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/internal/transport"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
)

// baseResyncPeriod is the period after which an informer reports all objects again, as in controller-runtime. Each
// informer varies it by a tenth, so that the informers of a process do not resync at the same moment.
const baseResyncPeriod = 10 * time.Hour

// WatchInterest describes which objects of a resource an informer watches, and which parts of them it keeps.
type WatchInterest struct {
	// Namespace limits the objects to one namespace; empty is the whole cluster.
	Namespace string
	// Kind requests protobuf, with JSON as the alternative if the API server cannot encode the kind. Nil requests JSON.
	Kind *compact.MessageKind
	// MetadataOnly keeps only the metadata of the objects, with apiVersion and kind, in JSON.
	MetadataOnly bool
	// KeepsWhole, if set, returns false for the metadata of objects of which only the identity is kept: name,
	// namespace, uid, resourceVersion and deletionTimestamp. It requires JSON.
	KeepsWhole func(metadata []byte) bool
	// Selector limits the objects by their labels; nil selects all. If an object stops matching, the watch reports it
	// as deleted.
	Selector labels.Selector
	// Range limits the objects to one range. API servers that cannot do so send all objects, and the others are dropped
	// here.
	Range sharding.Range
	// OnForeign is called when an object outside of the range has arrived: the API server does not filter. It may be
	// nil.
	OnForeign func()
}

// New creates the informer of a resource. Its items are of type *compact.Object. The client sends the requests of this
// informer only.
func New(
	config *rest.Config, way *http.Client, resource discovery.Resource, interest WatchInterest,
) (toolscache.SharedIndexInformer, error) {
	lists, err := newListing(config, way, resource, interest)
	if err != nil {
		return nil, err
	}
	// The indexer uses no additional indexes: objects are only found by their key.
	return toolscache.NewSharedIndexInformerWithOptions(
		&toolscache.ListWatch{ListWithContextFunc: lists.listObjects, WatchFuncWithContext: lists.watchObjects},
		&compact.CachedObject{},
		toolscache.SharedIndexInformerOptions{
			ResyncPeriod: resyncPeriod(), ObjectDescription: resource.GroupVersionKind.String(),
		},
	), nil
}

// resyncPeriod returns the resync period of one informer: the constant, plus or minus a tenth.
func resyncPeriod() time.Duration { return baseResyncPeriod/10*9 + rand.N(baseResyncPeriod/5) }

// newListing creates the client that lists and watches for one informer.
func newListing(
	config *rest.Config, way *http.Client, resource discovery.Resource, interest WatchInterest,
) (*listing, error) {
	// The client has the configuration of the operator, but its own codec.
	version := resource.GroupVersion()
	own := patching.ClientConfig(config, version)
	texts := textDecoder{packer: compact.NewPacker(interest.Kind), keepsWhole: interest.KeepsWhole}
	switch {
	case interest.MetadataOnly:
		// The metadata form has the type PartialObjectMetadata, so the real type is set here.
		// Metadata are requested as JSON in any case, so the two options exclude each other.
		texts.metadataType = &metav1.TypeMeta{APIVersion: version.String(), Kind: resource.Kind}
	case interest.Kind != nil:
		own.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	known := serializer{texts, &transport.WatchEvents{}}
	own.NegotiatedSerializer = known
	client, err := rest.RESTClientForConfigAndClient(own, way)
	if err != nil {
		return nil, fmt.Errorf("making the client of %s: %w", resource.GroupVersionKind, err)
	}
	return &listing{client: client, plural: resource.Plural, interest: interest, events: known.events}, nil
}

// parameters encodes list options as query parameters.
var parameters = func() runtime.ParameterCodec {
	known := runtime.NewScheme()
	metav1.AddToGroupVersion(known, schema.GroupVersion{Version: "v1"})
	return runtime.NewParameterCodec(known)
}()

// listing sends the lists and watches of one informer. It runs at most one watch at a time, which is why one counter of
// events is enough.
type listing struct {
	client   rest.Interface
	plural   string
	interest WatchInterest
	events   *transport.WatchEvents // of the watch
}

// listObjects sends one list request; it implements the informer's list function.
func (l *listing) listObjects(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	found, err := l.newRequest(&options, "PartialObjectMetadataList").Do(ctx).Get()
	if page, isList := found.(*list); isList && !l.interest.Range.IsWhole() {
		page.Items = slices.DeleteFunc(page.Items, l.isForeign)
	}
	return found, err
}

// watchObjects starts a watch; it implements the informer's watch function. The context carries the counter of events
// to the transport.
func (l *listing) watchObjects(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	// The informer leaves this option to the watch function.
	options.Watch = true
	ctx = transport.WithEvents(ctx, l.events)
	stream, err := l.newRequest(&options, "PartialObjectMetadata").Watch(ctx)
	if err != nil || l.interest.Range.IsWhole() {
		return stream, err
	}
	return l.watchRange(stream), nil
}

// metadataAccept is the Accept header for metadata. API servers that do not support this form, such as some aggregated
// ones, send whole objects: the second media type permits that.
const metadataAccept = "application/json;as=%s;g=meta.k8s.io;v=v1,application/json"

// newRequest builds a list or watch request. The second argument is the kind of the metadata form, if only metadata are
// wanted.
func (l *listing) newRequest(options *metav1.ListOptions, metadata string) *rest.Request {
	if l.interest.Selector != nil {
		options.LabelSelector = l.interest.Selector.String()
	}
	// An empty namespace lists the whole cluster.
	request := l.client.Get().NamespaceIfScoped(l.interest.Namespace, l.interest.Namespace != "").Resource(l.plural).
		SpecificallyVersionedParams(options, parameters, schema.GroupVersion{Version: "v1"})
	// ListOptions of the required version of apimachinery lack the field.
	if selector := l.interest.Range.Selector(); selector != "" {
		request.Param("shardSelector", selector)
	}
	if l.interest.MetadataOnly {
		request.SetHeader("Accept", fmt.Sprintf(metadataAccept, metadata))
	}
	// The reflector sets a timeout for watches: apply it to the whole request, too.
	if options.TimeoutSeconds != nil {
		request.Timeout(time.Duration(*options.TimeoutSeconds) * time.Second)
	}
	return request
}

// isForeign reports whether the object is outside of the range.
func (l *listing) isForeign(object *compact.CachedObject) bool {
	if l.interest.Range.Contains(object.GetUID()) {
		return false
	}
	if l.interest.OnForeign != nil {
		l.interest.OnForeign()
	}
	return true
}

// rangeWatch is a watch without the objects outside of the range. Their events become bookmarks, so the informer
// resumes from the newest resourceVersion when the watch breaks. Without any event, it would list all objects again.
// Unlike that of watch.Filter, its goroutine ends when the watch is stopped, even if no caller reads the next event.
type rangeWatch struct {
	watch.Interface

	kept    chan watch.Event
	stopped chan struct{}
	stop    sync.Once
}

// watchRange starts the goroutine that passes on the events of the range, and all events without an object; of other
// objects only their resourceVersions.
func (l *listing) watchRange(all watch.Interface) watch.Interface {
	w := &rangeWatch{Interface: all, kept: make(chan watch.Event), stopped: make(chan struct{})}
	go func() {
		defer close(w.kept)
		for event := range all.ResultChan() {
			// A bookmark has an object without a uid.
			object, isObject := event.Object.(*compact.CachedObject)
			if isObject && event.Type != watch.Bookmark && l.isForeign(object) {
				if len(object.GetObjectMeta().GetAnnotations()) > 0 {
					continue // it would look like the bookmark at the end of the list
				}
				event.Type = watch.Bookmark
			}
			select {
			case w.kept <- event:
			case <-w.stopped:
				return
			}
		}
	}()
	return w
}

// ResultChan returns the channel of the events.
func (w *rangeWatch) ResultChan() <-chan watch.Event { return w.kept }

// Stop ends the watch. It can be called more than once.
func (w *rangeWatch) Stop() {
	w.stop.Do(func() { close(w.stopped) })
	w.Interface.Stop()
}

// ObjectReader reads single objects of a resource from the API server.
type ObjectReader struct {
	listing  func() (*listing, error) // for all namespaces; created at the first use
	resource discovery.Resource
}

// NewLookup creates the lookup of a resource. It sends no requests yet.
func NewLookup(config *rest.Config, way *http.Client, resource discovery.Resource) *ObjectReader {
	return &ObjectReader{resource: resource, listing: sync.OnceValues(func() (*listing, error) {
		return newListing(config, way, resource, WatchInterest{MetadataOnly: true})
	})}
}

// CurrentUID returns the uid of the object with this name, or an empty uid if the object does not exist. It lists the
// metadata with a field selector instead of getting the object, because an informer needs the permission to list
// anyway, but not the one to get.
func (l *ObjectReader) CurrentUID(ctx context.Context, of types.NamespacedName) (types.UID, error) {
	// The client is created at the first lookup, because a controller may never need one.
	all, err := l.listing()
	if err != nil {
		return "", err
	}
	// Copy the listing: several goroutines look up objects of different namespaces.
	asked := *all
	asked.interest.Namespace = of.Namespace
	found, err := asked.listObjects(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, of.Name).String(),
	})
	if err != nil {
		return "", fmt.Errorf("looking for %s %s: %w", l.resource.Kind, of, err)
	}
	// A nil page means that the server answered with something else, such as a single object.
	page, _ := found.(*list)
	if page == nil {
		return "", fmt.Errorf("looking for %s %s: the response is not a list", l.resource.Kind, of)
	}
	// Compare the names: a server that ignored the field selector would return other objects, too.
	for _, object := range page.Items {
		if object.ObjectKey() == of {
			return object.GetUID(), nil
		}
	}
	return "", nil
}
