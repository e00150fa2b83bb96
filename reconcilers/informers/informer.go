package informers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
)

// resync is how often all objects are shown again as they are: the same as in controller-runtime. A tenth more or less
// keeps the informers of a process apart.
const resync = 10 * time.Hour

// New makes the informer of a resource in a namespace; an empty one is all. Its items are of type *compact.Object. With
// a kind, it asks for protobuf, and takes JSON where the API server has nothing else.
func New(
	config *rest.Config, way *http.Client, resource discovery.Resource, namespace string, kind *compact.Kind,
) (toolscache.SharedIndexInformer, error) {
	client, err := clientOf(config, way, resource, kind)
	if err != nil {
		return nil, fmt.Errorf("making the client of %s: %w", resource.GroupVersionKind, err)
	}
	lists := &listing{client: client, plural: resource.Plural, namespace: namespace}
	return toolscache.NewSharedIndexInformerWithOptions(
		&toolscache.ListWatch{ListWithContextFunc: lists.list, WatchFuncWithContext: lists.watch}, &compact.Object{},
		toolscache.SharedIndexInformerOptions{
			ResyncPeriod: period(), ObjectDescription: resource.GroupVersionKind.String(),
		},
	), nil
}

func period() time.Duration { return resync/10*9 + rand.N(resync/5) }

// clientOf makes a client of one group and version.
func clientOf(
	config *rest.Config, way *http.Client, resource discovery.Resource, kind *compact.Kind,
) (rest.Interface, error) {
	own := rest.CopyConfig(config)
	version := resource.GroupVersion()
	own.GroupVersion, own.APIPath = &version, "/apis"
	if version.Group == "" {
		own.APIPath = "/api"
	}
	own.ContentType, own.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	if kind != nil {
		own.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	own.NegotiatedSerializer = serializer{compact.NewPacker(kind)}
	return rest.RESTClientForConfigAndClient(own, way)
}

// parameters encode the options of requests.
var parameters = func() runtime.ParameterCodec {
	known := runtime.NewScheme()
	metav1.AddToGroupVersion(known, schema.GroupVersion{Version: "v1"})
	return runtime.NewParameterCodec(known)
}()

// listing is what an informer asks the API server.
type listing struct {
	client            rest.Interface
	plural, namespace string
}

func (l *listing) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return l.request(&options).Do(ctx).Get()
}

func (l *listing) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return l.request(&options).Watch(ctx)
}

func (l *listing) request(options *metav1.ListOptions) *rest.Request {
	request := l.client.Get().NamespaceIfScoped(l.namespace, l.namespace != "").Resource(l.plural).
		SpecificallyVersionedParams(options, parameters, schema.GroupVersion{Version: "v1"})
	if options.TimeoutSeconds != nil {
		request.Timeout(time.Duration(*options.TimeoutSeconds) * time.Second)
	}
	return request
}
