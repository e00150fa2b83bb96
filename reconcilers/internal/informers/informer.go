package informers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/transport"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/rawclient"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/shards"
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
	Range shards.Range
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
	own := rawclient.ConfigFor(config, version)
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
