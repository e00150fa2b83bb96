package reviews_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/manifests"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/reviews"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

const operator = "test.example.org"

var widgets = discovery.Resource{
	GroupVersionKind: schema.GroupVersionKind{Group: "test.example.org", Version: "v1", Kind: "Widget"},
	Plural:           "widgets", Namespaced: true, Preferred: true,
}

// muxServer is a webhook server without a port.
type muxServer struct{ mux *http.ServeMux }

func (s muxServer) NeedLeaderElection() bool                   { return false }
func (s muxServer) Register(path string, handler http.Handler) { s.mux.Handle(path, handler) }
func (s muxServer) Start(ctx context.Context) error            { <-ctx.Done(); return nil }
func (s muxServer) StartedChecker() healthz.Checker            { return healthz.Ping }
func (s muxServer) WebhookMux() *http.ServeMux                 { return s.mux }

// newServer returns the review server of an operator with these settings.
func newServer(settings reviews.ReviewSettings, kept defaults.Persistence) *reviews.ReviewServer {
	r := reviews.NewReviewServer(operator, "main.go:1")
	r.ApplyPlanSettings(&settings, defaults.NamespaceScope{}, kept, true)
	return r
}

func planOf(t *testing.T, all ...*handlers.Handler) (plan []reconcilers.Registration) {
	t.Helper()
	selector, err := discovery.ParseSpelling("widgets.test.example.org")
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range all {
		plan = append(plan, reconcilers.Registration{Selector: selector, Handler: h})
	}
	return plan
}

// guard returns an admission handler that allows everything.
func guard() *handlers.Handler {
	return &handlers.Handler{
		ID: "guard", Family: handlers.Admitting,
		Call: func(context.Context, *handlers.Invocation) error { return nil },
	}
}

func TestAdd(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		asKopf bool
		plan   []reconcilers.Registration
		want   map[string]int // status codes by path
	}{
		"OneHandler": {
			"the path consists of the operator, the kind of review and the handler", false, planOf(t, guard()),
			map[string]int{"/test.example.org/validate/guard": http.StatusOK, "/elsewhere": http.StatusNotFound},
		},
		"AsKopf": {
			"the path in Kopf's format is the id alone",
			true, planOf(t, guard()), map[string]int{"/guard": http.StatusOK},
		},
		"NoHandlers": {
			"change handlers are not served", false,
			planOf(t, &handlers.Handler{ID: "made", Family: handlers.Changing, Reason: cause.Create}),
			map[string]int{"/test.example.org/validate/made": http.StatusNotFound},
		},
	} {
		t.Run(name, func(t *testing.T) {
			on := muxServer{http.NewServeMux()}
			m, err := ctrl.NewManager(memapi.Config(memapi.New()), ctrl.Options{
				Scheme: runtime.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"}, WebhookServer: on,
			})
			if err != nil {
				t.Fatal(err)
			}
			r := newServer(reviews.ReviewSettings{}, defaults.Persistence{KopfFormats: tc.asKopf})
			if err := r.AddToManager(m, reviews.ReviewSetup{Plan: tc.plan,
				Metrics: prometheus.NewRegistry()}); err != nil {
				t.Fatal(err)
			}
			for path, want := range tc.want {
				answer := httptest.NewRecorder()
				on.mux.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, path, strings.NewReader("{}")))
				if isFound := answer.Code != http.StatusNotFound; isFound != (want == http.StatusOK) {
					t.Errorf("\n%s\nPOST %s: %d, want %d or a refusal of an empty review", tc.reason, path, answer.Code,
						want)
				}
			}
			if open := r.ReviewOpener(tc.plan); (open != nil) != (len(reviews.WatchingHandlers(tc.plan)) == 0) {
				t.Errorf("\n%s\nOpener(): %t", tc.reason, open != nil)
			}
		})
	}
}

func TestPrint(t *testing.T) {
	r := newServer(reviews.ReviewSettings{}, defaults.Persistence{})
	if _, err := r.PrintConfigurations(planOf(t, guard()), manifests.Address{}); err == nil {
		t.Error("Print() without a way: no error")
	}
	p, err := r.PrintConfigurations(planOf(t, guard()), manifests.Address{URL: "https://here"})
	if err != nil {
		t.Fatal(err)
	}
	objects, hints, err := p.ConfigurationObjects([]discovery.Resource{widgets})
	if err != nil || len(objects) != 1 || len(hints) != 1 {
		t.Fatalf("Objects(): %d objects, hints %q, %v; want one object, and a hint at the bundle",
			len(objects), hints, err)
	}
	made, _ := objects[0].(*admissionregistrationv1.ValidatingWebhookConfiguration)
	if made == nil || *made.Webhooks[0].ClientConfig.URL != "https://here/test.example.org/validate/guard" {
		t.Errorf("Objects(): %v", objects[0])
	}
}

func TestSetsFinalizers(t *testing.T) {
	selector, _ := discovery.ParseSpelling("widgets")
	entry := func(reason cause.Reason) registry.ResolvedEntry {
		return registry.ResolvedEntry{
			HandlerEntry: registry.HandlerEntry{Handler: &handlers.Handler{Family: handlers.Changing, Reason: reason}},
			Selector:     selector,
		}
	}
	all := []registry.ResolvedEntry{entry(cause.Create), entry(cause.Delete), entry(cause.Delete)}
	on := newServer(reviews.ReviewSettings{FinalizerOnCreate: true}, defaults.Persistence{})
	if more := on.FinalizerHandlers(all); len(more) != 1 || !more[0].Handler.Mutating {
		t.Errorf("SetsFinalizers(): %v, want one mutating handler for the selection", more)
	}
	if more := on.FinalizerHandlers(all[:1]); len(more) != 0 {
		t.Errorf("SetsFinalizers() without delete handlers: %v, want none", more)
	}
	off := newServer(reviews.ReviewSettings{}, defaults.Persistence{})
	if more := off.FinalizerHandlers(all); len(more) != 0 {
		t.Errorf("SetsFinalizers() without FinalizerOnCreate: %v, want none", more)
	}
}

func TestWithOperations(t *testing.T) {
	mutating, chosen := guard(), guard()
	mutating.Mutating, chosen.Operations = true, []string{"DELETE"}
	own, kopf := newServer(reviews.ReviewSettings{}, defaults.Persistence{}),
		newServer(reviews.ReviewSettings{}, defaults.Persistence{KopfFormats: true})
	for name, tc := range map[string]struct {
		reason string
		server *reviews.ReviewServer
		h      *handlers.Handler
		want   []string
	}{
		"Validating": {"a validating handler does not review deletions by default",
			own, guard(), []string{"CREATE", "UPDATE", "CONNECT"}},
		"Mutating": {"a mutating handler keeps the defaults of the configuration", own, mutating, nil},
		"Chosen":   {"chosen operations override the defaults", own, chosen, []string{"DELETE"}},
		"AsKopf":   {"in Kopf's format, a validating handler reviews deletions, too", kopf, guard(), nil},
	} {
		if d := cmp.Diff(tc.want, tc.server.WithDefaultOperations(tc.h).Operations); d != "" {
			t.Errorf("%s: %s\n-want, +got:\n%s", name, tc.reason, d)
		}
	}
}

func TestWebhookServer(t *testing.T) {
	given := muxServer{http.NewServeMux()}
	if got := (&reviews.ReviewSettings{Server: given}).WebhookServer(); got != webhook.Server(given) {
		t.Errorf("WebhookServer(): %T, want the given one", got)
	}
	own, _ := (&reviews.ReviewSettings{Port: 1, Address: "127.0.0.2"}).WebhookServer().(*webhook.DefaultServer)
	if own == nil || own.Options.Port != 1 || own.Options.Host != "127.0.0.2" {
		t.Errorf("WebhookServer(): %v, want one at 127.0.0.2:1", own)
	}
	if _, plain := (&reviews.ReviewSettings{Insecure: true}).WebhookServer().(*webhook.DefaultServer); plain {
		t.Error("WebhookServer() with Insecure serves TLS")
	}
}

func TestReviewedObjects(t *testing.T) {
	var objects reviews.ReviewedObjects
	object := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	other := &admissionregistrationv1.MutatingWebhookConfiguration{}
	request := &handlers.AdmissionRequest{}
	end := objects.BeginReview(request, object)
	if objects.RequestOf(object) != request || objects.RequestOf(other) != nil {
		t.Errorf("Of(): %v, %v, want the request of the first object alone", objects.RequestOf(object),
			objects.RequestOf(other))
	}
	if end(); objects.RequestOf(object) != nil {
		t.Error("Of() after the review: not nil")
	}
}
