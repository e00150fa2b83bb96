package agreement_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// portlessServer is a webhook server without a port.
type portlessServer struct{ mux *http.ServeMux }

func (s *portlessServer) NeedLeaderElection() bool { return false }

func (s *portlessServer) Register(path string, handler http.Handler) { s.mux.Handle(path, handler) }

func (s *portlessServer) Start(ctx context.Context) error { <-ctx.Done(); return nil }

func (s *portlessServer) StartedChecker() healthz.Checker { return healthz.Ping }

func (s *portlessServer) WebhookMux() *http.ServeMux { return s.mux }

const configurationName = "shared.example.org"

var configurationResource = memapi.Resource{
	Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration",
	Plural: "validatingwebhookconfigurations", Plain: true,
}

// operatorUnderTest is a running operator that denies each request that one of its handlers is called for.
type operatorUnderTest struct {
	webhookServer *portlessServer
	entries       []admissionregistrationv1.ValidatingWebhook
}

// operate runs an operator with a handler for each filter, in a bubble, until the test ends.
func operate(t *testing.T, all []filter, settings kopf.Settings) operatorUnderTest {
	t.Helper()
	settings.Admission.Managed, settings.Admission.URL = configurationName, "https://here"
	op := kopf.New("test.example.org", settings)
	whole := kopf.Operations("CREATE", "UPDATE", "DELETE", "CONNECT") // deletions are not included by default
	for i, one := range all {
		one.narrow(kopf.ForResource(op, "widgets")).Validate(fmt.Sprintf("f%d", i),
			func(context.Context, *kopf.Admission[*kopf.Unstructured]) error { return kopf.Deny(418, "called") },
			whole, kopf.JoinOptions(one.options...))
	}
	api := memapi.New()
	api.Install(memapi.Resource{
		Group: "example.org", Version: "v1", Kind: "Widget", Plural: "widgets", Namespaced: true,
	})
	mutating := configurationResource
	mutating.Kind, mutating.Plural = "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"
	api.Install(configurationResource)
	api.Install(mutating)
	endpoint := &portlessServer{http.NewServeMux()}
	manager, err := ctrl.NewManager(memapi.Config(api), ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(), WebhookServer: endpoint,
	})
	if err == nil {
		err = op.SetupWithManager(manager)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	time.Sleep(time.Minute)
	var kept admissionregistrationv1.ValidatingWebhookConfiguration
	written := api.Object(configurationResource, "", configurationName)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(written, &kept); err != nil {
		t.Fatal(err)
	}
	return operatorUnderTest{endpoint, kept.Webhooks}
}

// isHandlerCalled reports whether the handler of an entry is called for a request.
func (o operatorUnderTest) isHandlerCalled(
	t *testing.T, entry admissionregistrationv1.ValidatingWebhook, r request,
) bool {
	t.Helper()
	address, err := url.Parse(*entry.ClientConfig.URL)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"request": map[string]any{
		"uid": "1", "operation": r.operation, "subResource": r.subresource, "object": r.object, "oldObject": r.old,
		"resource": map[string]any{"group": "example.org", "version": "v1", "resource": "widgets"},
		"userInfo": map[string]any{}, "name": "w", "namespace": r.in(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	asked := httptest.NewRequestWithContext(t.Context(), http.MethodPost, address.EscapedPath(), bytes.NewReader(text))
	asked.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	o.webhookServer.mux.ServeHTTP(answer, asked)
	var verdict admissionv1.AdmissionReview
	if err := json.Unmarshal(answer.Body.Bytes(), &verdict); err != nil || verdict.Response == nil {
		t.Fatalf("%s: status %d, %s, %v", entry.Name, answer.Code, answer.Body, err)
	}
	if out := verdict.Response; !out.Allowed && out.Result.Code != 418 {
		t.Fatalf("%s: the review failed: %+v", entry.Name, out.Result)
	}
	return !verdict.Response.Allowed
}
