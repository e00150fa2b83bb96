package traces_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/test/traces"
)

// portlessServer is a webhook server without a port. It takes a second to start, as real ones take their time.
type portlessServer struct {
	*http.ServeMux
	startedAt time.Time
}

func (s portlessServer) NeedLeaderElection() bool                   { return false }
func (s portlessServer) Register(path string, handler http.Handler) { s.Handle(path, handler) }
func (s portlessServer) Start(ctx context.Context) error            { <-ctx.Done(); return nil }
func (s portlessServer) WebhookMux() *http.ServeMux                 { return s.ServeMux }

func (s portlessServer) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		if time.Since(s.startedAt) < time.Second {
			return errors.New("it is starting")
		}
		return nil
	}
}

func admission(s *traces.Story) {
	for _, kind := range []string{"Mutating", "Validating"} {
		s.Server.Install(memapi.Resource{
			Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind + "WebhookConfiguration",
			Plural: strings.ToLower(kind) + "webhookconfigurations", Plain: true,
		})
	}
	server := portlessServer{http.NewServeMux(), time.Now()}
	settings := kopf.Settings{Admission: kopf.AdmissionSettings{
		Managed: "widgets.example.org", URL: "https://webhooks.example.org", Server: server,
	}}
	type Admission = kopf.Admission[*kopf.Unstructured]
	start(s, settings, func(all Widgets) {
		all.Mutate("defaults", func(_ context.Context, a *Admission) error {
			return kopf.SetField(a.Object, "spec.size", 1)
		})
		all.Validate("size", func(context.Context, *Admission) error { return kopf.Deny(403, "it is too large") })
	})
	for _, path := range []string{"/widgets.example.org/mutate/defaults", "/widgets.example.org/validate/size"} {
		s.Step("The API server sends a review to "+path+".", settleTime, func() {
			const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1",
				"kind":{"group":"example.org","version":"v1","kind":"Widget"},"operation":"CREATE","name":"one",
				"userInfo":{"username":"ann"},
				"resource":{"group":"example.org","version":"v1","resource":"widgets"},"namespace":"default",
				"object":{"apiVersion":"example.org/v1","kind":"Widget",
				"metadata":{"namespace":"default","name":"one"}}}}`
			answer := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(s.T.Context(), http.MethodPost, path, strings.NewReader(review))
			server.ServeHTTP(answer, r)
			var got admissionv1.AdmissionReview
			if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
				s.T.Fatalf("%v: %s", err, answer.Body)
			}
			denial := ptr.Deref(got.Response.Result, metav1.Status{})
			s.Note(fmt.Sprintf("answer: allowed %t, patch %s, code %d, message %q",
				got.Response.Allowed, got.Response.Patch, denial.Code, denial.Message))
		})
	}
}

func takeover(s *traces.Story) {
	s.Server.Install(widgets)
	s.Step("A Kopf operator has left widget one between two attempts.", 5*time.Second, func() {
		const record = `{\"started\":\"2000-01-01T00:00:00.000000+00:00\",` +
			`\"delayed\":\"2000-01-01T00:01:20.000000+00:00\",\"purpose\":\"create\",\"retries\":1,` +
			`\"success\":false,\"failure\":false,\"message\":\"later\"}`
		s.Send("POST", collection, `{"metadata":{"name":"one","finalizers":["kopf.zalando.org/KopfFinalizerMarker"],`+
			`"annotations":{"kopf.zalando.org/create_fn":"`+record+`"}},"spec":{"size":1}}`)
	})
	start(s, kopf.AsKopf(), func(all Widgets) {
		all.OnCreate("create_fn", succeed)
		all.OnDelete("delete_fn", succeed)
	})
	edit(s, "A user labels it.", 40*time.Second, `{"metadata":{"labels":{"team":"a"}}}`)
	remove(s, settleTime)
}

func pause(s *traces.Story) { pauseWith(s, false) }

func pauseWithoutWrites(s *traces.Story) { pauseWith(s, true) }

// pauseWith has a pause in which the API server may refuse to write widgets.
func pauseWith(s *traces.Story, refuses bool) {
	var refusing atomic.Bool
	s.Connection.Before = func(_ context.Context, r memapi.Request) error {
		if isPatch(r) && refusing.Load() {
			return apierrors.NewServiceUnavailable("it is starting")
		}
		return nil
	}
	s.Server.Install(memapi.Resource{
		Group: "kopf.dev", Version: "v1", Kind: "ClusterKopfPeering", Plural: "clusterkopfpeerings",
		StatusSubresource: true,
	})
	const peerings = "/apis/kopf.dev/v1/clusterkopfpeerings"
	s.Step("A user creates a peering object.", 0, func() { s.Send("POST", peerings, `{"metadata":{"name":"shared"}}`) })
	settings := kopf.Settings{Peering: kopf.PeeringSettings{Name: "shared", Identity: "us", Lifetime: time.Hour}}
	start(s, settings, func(all Widgets) {
		all.On("sized", kopf.CreateUpdateResume(), func(context.Context, *Change) error {
			time.Sleep(4 * time.Second)
			return nil
		})
	})
	create(s, 2*time.Second)
	s.Step("An operator of a higher priority appears.", settleTime, func() {
		refusing.Store(refuses)
		s.Send("PATCH", peerings+"/shared/status", fmt.Sprintf(
			`{"status":{"them":{"priority":100,"lifetime":3600,"lastseen":%q}}}`, time.Now().UTC().Format(time.RFC3339),
		))
	})
	edit(s, "A user resizes widget one.", settleTime, `{"spec":{"size":2}}`)
	s.Step("The other operator leaves.", 20*time.Second, func() {
		refusing.Store(false)
		s.Send("PATCH", peerings+"/shared/status", `{"status":{"them":null}}`)
	})
}

func restart(s *traces.Story) {
	run := func() {
		start(s, kopf.Settings{Conditions: true}, func(all Widgets) {
			kopf.NewIndex(all, "by-size", func(_ context.Context, w *kopf.Unstructured) (map[int]string, error) {
				return map[int]string{kopf.GetFieldOr(w, "spec.size", 0): w.GetName()}, nil
			})
			all.OnCreate("made", succeed)
			all.OnResume("resumed", succeed)
		})
	}
	run()
	create(s, settleTime)
	s.Stop()
	run()
}
