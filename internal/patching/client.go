package patching

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// ObjectClient sends requests for single objects of one resource. It passes the bytes of each answer to a function of
// the caller, which must not keep them. It is safe for concurrent use.
//
// The clients of controller-runtime and client-go read an answer three times before it is decoded: to detect its type,
// to validate the JSON, and to find its end. This client decodes only error responses. Requests that the API server
// refuses with a delay are retried by client-go.
type ObjectClient struct {
	requests func() (rest.Interface, error) // made with the first request
	resource schema.GroupVersionResource
	timeout  time.Duration // of a request with all its retries; zero is unlimited
}

// RawPatch is one patch in the form in which it is sent.
type RawPatch struct {
	Type types.PatchType
	Data []byte
	// Status sends the patch to /status.
	Status bool
	// FieldManager is the owner of the fields. If it is empty, the API server derives the name from the user agent.
	FieldManager string
}

// NewObjectClient returns the client of a resource. It logs warnings of the API server, unless the configuration
// handles them.
func NewObjectClient(config *rest.Config, way *http.Client, resource schema.GroupVersionResource) *ObjectClient {
	// Creating the REST client can fail. The first request then returns the error, so NewObjectClient does not need
	// one.
	requests := sync.OnceValues(func() (rest.Interface, error) {
		return rest.RESTClientForConfigAndClient(configOf(config, resource.GroupVersion()), way)
	})
	return &ObjectClient{resource: resource, timeout: way.Timeout, requests: requests}
}

// configOf returns the configuration of the client. It is based on that of the dynamic client, whose serializer can
// decode the error responses of the API server.
func configOf(config *rest.Config, version schema.GroupVersion) *rest.Config {
	own := ClientConfig(dynamic.ConfigFor(config), version)
	if own.WarningHandler == nil && own.WarningHandlerWithContext == nil {
		own.WarningHandlerWithContext = logf.NewKubeAPIWarningLogger(logf.KubeAPIWarningLoggerOptions{})
	}
	return own
}

// ClientConfig returns a copy of the configuration for requests of one group and version, in JSON.
func ClientConfig(config *rest.Config, version schema.GroupVersion) *rest.Config {
	own := rest.CopyConfig(config)
	own.ContentType, own.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	own.GroupVersion, own.APIPath = &version, "/apis"
	// Only the core group is below /api.
	if version.Group == "" {
		own.APIPath = "/api"
	}
	return own
}

// Get reads an object from the API server, not from a cache.
func (c *ObjectClient) Get(ctx context.Context, key types.NamespacedName, take func([]byte) error) error {
	client, err := c.restClient()
	if err != nil {
		return err
	}
	answer := c.forObject(client.Get(), key).Do(ctx)
	if err := answer.Error(); err != nil {
		return err
	}
	text, err := answer.Raw()
	if err != nil {
		return err
	}
	return take(text)
}

// Patch sends a patch of an object, and passes the patched object to take.
func (c *ObjectClient) Patch(
	ctx context.Context, key types.NamespacedName, p RawPatch, take func([]byte) error,
) error {
	client, err := c.restClient()
	if err != nil {
		return err
	}
	asked := c.forObject(client.Patch(p.Type), key).Body(p.Data)
	if p.Status {
		asked.SubResource("status")
	}
	if p.FieldManager != "" {
		asked.Param("fieldManager", p.FieldManager)
	}
	// client-go limits a request with all its retries by this timeout, but not a stream.
	if c.timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, c.timeout)
		defer cancel()
		ctx = limited
	}
	return streamAnswer(ctx, asked, take)
}

// restClient returns the REST client, and creates it with the first call. A failure is permanent: it concerns the
// configuration.
func (c *ObjectClient) restClient() (rest.Interface, error) {
	client, err := c.requests()
	if err != nil {
		return nil, fmt.Errorf("making the client of %s: %w", c.resource, err)
	}
	return client, nil
}

// forObject completes a request with the path of an object. An empty namespace stands for a cluster-scoped object.
func (c *ObjectClient) forObject(request *rest.Request, key types.NamespacedName) *rest.Request {
	return request.NamespaceIfScoped(key.Namespace, key.Namespace != "").Resource(c.resource.Resource).Name(key.Name)
}

// buffers are reused for answers. Decoders copy all values that they keep, so a buffer can be reused when take has
// returned.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// streamAnswer sends the request and passes its answer to take. It reads the stream into a reused buffer, while
// client-go would allocate a new one that grows with the answer.
func streamAnswer(ctx context.Context, request *rest.Request, take func([]byte) error) error {
	body, err := request.Stream(ctx)
	if err != nil {
		return err
	}
	buffer, _ := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buffer)
	buffer.Reset()
	_, err = buffer.ReadFrom(body)
	// Close even after a failed read, or the connection would leak.
	if closed := body.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	return take(buffer.Bytes())
}
