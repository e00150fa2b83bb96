package rawclient

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

// Client sends requests for single objects of one resource, and lends each answer, as it is, to the function that takes
// it.
type Client struct {
	requests func() (rest.Interface, error) // made once, when it is first needed
	resource schema.GroupVersionResource
	timeout  time.Duration // of a request with all that it is sent again; zero is none
}

// Patch is one patch as it is sent.
type Patch struct {
	Type types.PatchType
	Data []byte
	// Status sends it to /status.
	Status bool
	// FieldManager is who has the fields; an empty one is whom the API server takes the client for.
	FieldManager string
}

// New makes the client of a resource. Warnings of the API server are logged, unless the configuration says what
// to do with them.
func New(config *rest.Config, way *http.Client, resource schema.GroupVersionResource) *Client {
	return &Client{resource: resource, timeout: way.Timeout, requests: sync.OnceValues(func() (rest.Interface, error) {
		return rest.RESTClientForConfigAndClient(configOf(config, resource.GroupVersion()), way)
	})}
}

func configOf(config *rest.Config, version schema.GroupVersion) *rest.Config {
	own := ConfigFor(dynamic.ConfigFor(config), version) // which knows how to read the refusals of the API server
	if own.WarningHandler == nil && own.WarningHandlerWithContext == nil {
		own.WarningHandlerWithContext = logf.NewKubeAPIWarningLogger(logf.KubeAPIWarningLoggerOptions{})
	}
	return own
}

// ConfigFor is a copy of the configuration for requests of one group and version, in JSON.
func ConfigFor(config *rest.Config, version schema.GroupVersion) *rest.Config {
	own := rest.CopyConfig(config)
	own.ContentType, own.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	own.GroupVersion, own.APIPath = &version, "/apis"
	if version.Group == "" {
		own.APIPath = "/api"
	}
	return own
}

// Get reads an object live, not from a cache.
func (c *Client) Get(ctx context.Context, key types.NamespacedName, take func([]byte) error) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	answer := c.of(client.Get(), key).Do(ctx)
	if err := answer.Error(); err != nil {
		return err
	}
	text, err := answer.Raw()
	if err != nil {
		return err
	}
	return take(text)
}

// Patch sends a patch of an object.
func (c *Client) Patch(
	ctx context.Context, key types.NamespacedName, p Patch, take func([]byte) error,
) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	asked := c.of(client.Patch(p.Type), key).Body(p.Data)
	if p.Status {
		asked.SubResource("status")
	}
	if p.FieldManager != "" {
		asked.Param("fieldManager", p.FieldManager)
	}
	if c.timeout > 0 { // streams have none by themselves
		limited, cancel := context.WithTimeout(ctx, c.timeout)
		defer cancel()
		ctx = limited
	}
	return stream(ctx, asked, take)
}

func (c *Client) client() (rest.Interface, error) {
	client, err := c.requests()
	if err != nil {
		return nil, fmt.Errorf("making the client of %s: %w", c.resource, err)
	}
	return client, nil
}

func (c *Client) of(request *rest.Request, key types.NamespacedName) *rest.Request {
	return request.NamespaceIfScoped(key.Namespace, key.Namespace != "").Resource(c.resource.Resource).Name(key.Name)
}

// buffers are where answers are read: what is made of them is made of copies.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// stream sends the request, and has its answer taken. It reads the stream itself, into memory that was used before:
// client-go would read it into memory that grows with what comes.
func stream(ctx context.Context, request *rest.Request, take func([]byte) error) error {
	body, err := request.Stream(ctx)
	if err != nil {
		return err
	}
	buffer, _ := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buffer)
	buffer.Reset()
	_, err = buffer.ReadFrom(body)
	if closed := body.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	return take(buffer.Bytes())
}
