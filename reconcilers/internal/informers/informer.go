package informers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
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
)

// resync is how often all objects are shown again as they are: the same as in controller-runtime. A tenth more or less
// keeps the informers of a process apart.
const resync = 10 * time.Hour

// Interest says what an informer is to have of a resource.
type Interest struct {
	// Namespace is the one whose objects it has; an empty one is all.
	Namespace string
	// Kind has it ask for protobuf, and take JSON where the API server has nothing else; nil is JSON.
	Kind *compact.Kind
	// Metadata leaves everything out of the objects but their metadata, with the apiVersion and the kind, in JSON.
	Metadata bool
	// Whole, if set, is false for the metadata of objects of which nothing but the identity is kept: name, namespace,
	// uid, resourceVersion and deletionTimestamp. It is for JSON.
	Whole func(metadata []byte) bool
	// Selector leaves out objects whose labels do not match it; nil is none. A watch shows those that do not match any
	// more as if they were gone.
	Selector labels.Selector
}

// New makes the informer of a resource. Its items are of type *compact.Object.
func New(
	config *rest.Config, way *http.Client, resource discovery.Resource, interest Interest,
) (toolscache.SharedIndexInformer, error) {
	lists, err := newListing(config, way, resource, interest)
	if err != nil {
		return nil, err
	}
	return toolscache.NewSharedIndexInformerWithOptions(
		&toolscache.ListWatch{ListWithContextFunc: lists.list, WatchFuncWithContext: lists.watch}, &compact.Object{},
		toolscache.SharedIndexInformerOptions{
			ResyncPeriod: period(), ObjectDescription: resource.GroupVersionKind.String(),
		},
	), nil
}

func period() time.Duration { return resync/10*9 + rand.N(resync/5) }

// newListing makes the requests of one informer.
func newListing(
	config *rest.Config, way *http.Client, resource discovery.Resource, interest Interest,
) (*listing, error) {
	version := resource.GroupVersion()
	own := rawclient.ConfigFor(config, version)
	known := serializer{packer: compact.NewPacker(interest.Kind), whole: interest.Whole, events: &transport.Events{}}
	switch {
	case interest.Metadata:
		known.bare = &metav1.TypeMeta{APIVersion: version.String(), Kind: resource.Kind}
	case interest.Kind != nil:
		own.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	own.NegotiatedSerializer = known
	client, err := rest.RESTClientForConfigAndClient(own, way)
	if err != nil {
		return nil, fmt.Errorf("making the client of %s: %w", resource.GroupVersionKind, err)
	}
	return &listing{client: client, plural: resource.Plural, interest: interest, events: known.events}, nil
}

// parameters encode the options of requests.
var parameters = func() runtime.ParameterCodec {
	known := runtime.NewScheme()
	metav1.AddToGroupVersion(known, schema.GroupVersion{Version: "v1"})
	return runtime.NewParameterCodec(known)
}()

// listing sends the lists and watches of one informer, one watch at a time.
type listing struct {
	client   rest.Interface
	plural   string
	interest Interest
	events   *transport.Events // of the watch
}

func (l *listing) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return l.request(&options, "PartialObjectMetadataList").Do(ctx).Get()
}

func (l *listing) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	ctx = transport.WithEvents(ctx, l.events)
	return l.request(&options, "PartialObjectMetadata").Watch(ctx)
}

// metadataAlone is how the metadata are asked for. Servers that do not know it, such as those of other APIs, send whole
// objects.
const metadataAlone = "application/json;as=%s;g=meta.k8s.io;v=v1,application/json"

// request asks for the objects, or, under the name of that form, for their metadata.
func (l *listing) request(options *metav1.ListOptions, metadata string) *rest.Request {
	if l.interest.Selector != nil {
		options.LabelSelector = l.interest.Selector.String()
	}
	request := l.client.Get().NamespaceIfScoped(l.interest.Namespace, l.interest.Namespace != "").Resource(l.plural).
		SpecificallyVersionedParams(options, parameters, schema.GroupVersion{Version: "v1"})
	if l.interest.Metadata {
		request.SetHeader("Accept", fmt.Sprintf(metadataAlone, metadata))
	}
	if options.TimeoutSeconds != nil {
		request.Timeout(time.Duration(*options.TimeoutSeconds) * time.Second)
	}
	return request
}
