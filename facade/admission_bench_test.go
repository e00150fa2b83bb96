package kopf_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// The paths of two equal validators: one of this package, one written by hand.
const (
	facadePath      = "/bench.example.org/validate/size"
	handWrittenPath = "/validate-example-org-v1-widget"
)

var errTooLarge = errors.New("the size must be 100 at most")

// plainValidator is the validator of a project without this package.
type plainValidator struct{}

func (plainValidator) ValidateCreate(_ context.Context, w *Widget) (admission.Warnings, error) {
	return plainValidator{}.ValidateUpdate(nil, nil, w) //nolint:staticcheck // no context is needed
}

func (plainValidator) ValidateUpdate(_ context.Context, _, w *Widget) (admission.Warnings, error) {
	if w.Spec.Size > 100 {
		return nil, errTooLarge
	}
	return nil, nil
}

func (plainValidator) ValidateDelete(context.Context, *Widget) (admission.Warnings, error) {
	return nil, nil
}

// unstarted is a webhook server of a manager that never listens; only its paths are used.
type unstarted struct{ webhook.Server }

// Start waits until the context ends.
func (unstarted) Start(ctx context.Context) error { <-ctx.Done(); return nil }

// serveValidators registers both validators with one webhook server and returns its handler.
func serveValidators(t testing.TB) http.Handler {
	t.Helper()
	api := memapi.New()
	api.Install(widgetResource)
	on := unstarted{webhook.NewServer(webhook.Options{})}
	m := managerOn(t, api, func(o *ctrl.Options) { o.WebhookServer = on })
	op := kopf.New("bench.example.org")
	kopf.For(op, &Widget{}).Validate("size", func(_ context.Context, a *Admission) error {
		if a.Object.Spec.Size > 100 {
			return errTooLarge
		}
		return nil
	})
	if err := op.SetupWithManager(m); err != nil {
		t.Fatal(err)
	}
	on.Register(handWrittenPath, admission.WithValidator(m.GetScheme(), plainValidator{}))
	stop := startManager(t, m)
	t.Cleanup(func() { _ = stop() })
	for reviewed(on.WebhookMux(), facadePath) != http.StatusOK { // the operator still resolves the kind
		time.Sleep(time.Millisecond)
	}
	return on.WebhookMux()
}

// largeUpdate is an admission review of an update of an object of about 2 KB.
var largeUpdate = func() []byte {
	text, err := json.Marshal(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"request": request(map[string]any{
			"operation": "UPDATE", "object": body(largeSpec()), "oldObject": body(largeSpec()),
		}),
	})
	if err != nil {
		panic(err)
	}
	return text
}()

// reviewed sends one review to the handler, without a network connection.
func reviewed(by http.Handler, path string) (status int) {
	asked := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(largeUpdate))
	asked.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	by.ServeHTTP(answer, asked)
	return answer.Code
}

// BenchmarkAdmission measures one review by a handler of this package and one by a validator of controller-runtime,
// alternately and on one webhook server. The metric "rate" is the median duration of the latter divided by that of
// the former. "rate-by-CPU" is the same ratio in CPU time of all threads; other load of the machine affects it
// less.
func BenchmarkAdmission(b *testing.B) {
	defer kopf.LookAtFirstCallsOnly()()
	both := serveValidators(b)
	b.Run("handler", func(b *testing.B) {
		callAlternately(b, func(path string) int { return reviewed(both, path) })
	})
	b.Run("TLS", func(b *testing.B) {
		server := httptest.NewTLSServer(both)
		defer server.Close()
		callAlternately(b, func(path string) int {
			answer, err := server.Client().Post(server.URL+path, "application/json", bytes.NewReader(largeUpdate))
			if err != nil {
				b.Fatal(err)
			}
			defer answer.Body.Close()
			_, _ = io.Copy(io.Discard, answer.Body)
			return answer.StatusCode
		})
	})
	for name, path := range map[string]string{"facade": facadePath, "by-hand": handWrittenPath} {
		b.Run("allocations/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				reviewed(both, path)
			}
		})
	}
}

// callAlternately calls both validators alternately, so that other load of the machine slows both down.
func callAlternately(b *testing.B, review func(path string) int) {
	var spent [2][]time.Duration
	var busy [2]time.Duration
	for b.Loop() {
		for i, path := range []string{facadePath, handWrittenPath} {
			used, begin := cpuTime(b), time.Now()
			if status := review(path); status != http.StatusOK {
				b.Fatal(path, status)
			}
			spent[i] = append(spent[i], time.Since(begin))
			busy[i] += cpuTime(b) - used
		}
	}
	facade, hand := median(spent[0]), median(spent[1])
	b.ReportMetric(float64(busy[1])/float64(busy[0]), "rate-by-CPU")
	b.ReportMetric(float64(hand)/float64(facade), "rate")
	b.ReportMetric(float64(facade.Microseconds()), "µs/facade")
	b.ReportMetric(float64(hand.Microseconds()), "µs/by-hand")
}

// median returns the median, and sorts the durations.
func median(of []time.Duration) time.Duration { slices.Sort(of); return of[len(of)/2] }

// maxAllocations is the limit for one review of an update of 2 KB. Decoding the object and the old object as JSON
// values, as filters and differences need them, would double the allocations.
const maxAllocations = 500

// TestAdmissionAllocations shows that a review stays within its limit of allocations.
func TestAdmissionAllocations(t *testing.T) {
	defer kopf.LookAtFirstCallsOnly()()
	both := serveValidators(t)
	for range 100 { // the first calls are checked for misuse and cost more
		reviewed(both, facadePath)
	}
	// Goroutines that other tests leave behind, such as idle connections, allocate too. So the smallest number counts.
	n := math.Inf(1)
	for range 5 {
		n = min(n, testing.AllocsPerRun(100, func() { reviewed(both, facadePath) }))
	}
	if n > maxAllocations {
		t.Errorf("a review takes %.0f allocations, want at most %d", n, maxAllocations)
	}
}
