package admission_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/webhooks/admission"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

var (
	widgets = memapi.Resource{
		Group: "example.org", Version: "v1", Kind: "Widget", Plural: "widgets", Namespaced: true,
	}
	gadgets = memapi.Resource{
		Group: "example.org", Version: "v1", Kind: "Gadget", Plural: "gadgets", Namespaced: true,
	}
	validatingResource = memapi.Resource{
		Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration",
		Plural: "validatingwebhookconfigurations", Plain: true,
	}
	mutatingResource = memapi.Resource{
		Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration",
		Plural: "mutatingwebhookconfigurations", Plain: true,
	}
)

// definitionResource is the kind of CRDs.
var definitionResource = memapi.Resource{
	Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Plural: "customresourcedefinitions",
}

// definition returns the CRD of widgets.
func definition() map[string]any {
	return map[string]any{
		"metadata": map[string]any{"name": "widgets.example.org", "uid": "1"},
		"spec": map[string]any{
			"group": "example.org", "scope": "Namespaced",
			"names":    map[string]any{"kind": "Widget", "plural": "widgets", "singular": "widget"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true}},
		},
	}
}

// cluster returns an API server with webhook configurations and the given resources.
func cluster(resources ...memapi.Resource) *memapi.Server {
	server := memapi.New()
	for _, resource := range append(resources, validatingResource, mutatingResource) {
		server.Install(resource)
	}
	return server
}

// newRegistration returns a handler for a resource that denies with the text. It allows if the text is empty.
func newRegistration(r memapi.Resource, id, denies string) admission.RegisteredHandler {
	handler := &handlers.Handler{ID: id, Family: handlers.Admitting}
	handler.Call = func(context.Context, *handlers.Invocation) error {
		if denies == "" {
			return nil
		}
		return refusedError(denies)
	}
	kind := schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
	return admission.RegisteredHandler{Selector: discovery.OfKind(kind), Handler: handler}
}

type refusedError string

func (r refusedError) Error() string { return string(r) }

// options returns the options of an operator that is available at a URL.
func options(server http.RoundTripper, all ...admission.RegisteredHandler) admission.Options {
	return admission.Options{
		Operator: "ops.example.org", Registrations: all, Config: memapi.Config(server),
		HTTPClient: &http.Client{Transport: server}, Path: "/ops", Managed: "shared", Identity: "a",
		ClientConfig: func(bundle []byte) admissionregistrationv1.WebhookClientConfig {
			return tunnels.ByURL("https://here/ops", bundle)
		},
	}
}

// runningServer is a running admission component.
type runningServer struct {
	*admission.WebhookServer
	mux       *http.ServeMux
	cancel    context.CancelFunc
	runResult chan error
}

// start starts the admission component in a bubble.
func start(t *testing.T, o admission.Options) runningServer {
	t.Helper()
	made, err := admission.New(o)
	if err != nil {
		t.Fatal(err)
	}
	on := webhook.NewServer(webhook.Options{})
	if err := made.Register(on); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	r := runningServer{made, on.WebhookMux(), end, make(chan error, 1)}
	go func() { r.runResult <- made.Start(ctx) }()
	synctest.Wait()
	return r
}

func (r runningServer) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	if err := <-r.runResult; err != nil {
		t.Errorf("the stop must not return an error: got %v", err)
	}
}

// ask sends a review of a creation and returns the status and the reason of a denial.
func (r runningServer) ask(t *testing.T, path string, resource memapi.Resource) (status int, denied string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": map[string]any{
			"uid": "1", "operation": "CREATE", "userInfo": map[string]any{"username": "me"},
			"resource": map[string]any{
				"group": resource.Group, "version": resource.Version, "resource": resource.Plural,
			},
			"kind":   map[string]any{"group": resource.Group, "version": resource.Version, "kind": resource.Kind},
			"object": map[string]any{"metadata": map[string]any{"name": "x"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(string(body)))
	r.mux.ServeHTTP(answer, request)
	var said review.Response
	if answer.Code != http.StatusOK {
		return answer.Code, strings.TrimSpace(answer.Body.String())
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &said); err != nil {
		t.Fatal(err)
	}
	if said.Response.Allowed {
		return answer.Code, ""
	}
	return answer.Code, said.Response.Status.Message
}

// entries returns the entries of a configuration, by name.
func entries(
	t *testing.T, server *memapi.Server, of memapi.Resource,
) map[string]admissionregistrationv1.ValidatingWebhook {
	t.Helper()
	data, err := json.Marshal(server.Object(of, "", "shared"))
	if err != nil {
		t.Fatal(err)
	}
	var decoded admissionregistrationv1.ValidatingWebhookConfiguration
	if err := json.Unmarshal(data, &decoded); err != nil {
		t.Fatal(err)
	}
	all := map[string]admissionregistrationv1.ValidatingWebhook{}
	for _, entry := range decoded.Webhooks {
		all[entry.Name] = entry
	}
	return all
}

// forbidding returns a function that refuses requests with the verb.
func forbidding(verb string) func(context.Context, memapi.Request) error {
	return func(_ context.Context, r memapi.Request) error {
		if r.Verb == verb {
			return memapi.NewRefusal(http.StatusForbidden)
		}
		return nil
	}
}
