package reconcilers_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// TestRequestsAreRepeated shows the deviation D-requests: without the setting, a request has one attempt.
func TestRequestsAreRepeated(t *testing.T) {
	tests := map[string]struct {
		reason   string
		backoffs []time.Duration
		want     []string
	}{
		"ByDefault": {
			"by default, the object is retried after 1, 1 and 2 seconds, without holding a slot", nil,
			[]string{"0s", "1s", "2s", "4s"},
		},
		"OnTheSpot": {
			"with backoffs, the request itself is retried, even longer than the timeout of one attempt",
			[]time.Duration{2 * time.Second, 20 * time.Second, time.Minute}, []string{"0s", "2s", "22s", "1m22s"},
		},
		"ThenByTheObject": {
			"after the last attempt of the request, the object is retried", []time.Duration{10 * time.Second},
			[]string{"0s", "10s", "11s", "21s"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memapi.New()
				var began time.Time
				var at []string // the times of the patches; the first three are refused
				connection := refusePatches(server, func(string) int {
					if at = append(at, time.Since(began).Round(time.Second).String()); len(at) > 3 {
						return 0
					}
					return 500
				})
				called := 0
				stop := operate(t, connection, "configmaps", &handlers.Handler{
					ID: "c", Reason: cause.Create, Call: func(
						context.Context, *handlers.Invocation,
					) error {
						called++
						return nil
					},
				}, tc.backoffs...)
				defer stop()
				people, err := client.New(memapi.Config(server), client.Options{})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				began = time.Now()
				object := &unstructured.Unstructured{
					Object: map[string]any{
						"apiVersion": "v1", "kind": "ConfigMap",
						"metadata": map[string]any{"name": "one", "namespace": "default"},
					},
				}
				if err := people.Create(t.Context(), object); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				stop()
				if d := cmp.Diff(tc.want, at); d != "" || called != 1 {
					t.Errorf("%s: %d calls; the patches: -want, +got:\n%s", tc.reason, called, d)
				}
			})
		})
	}
}

// TestRetryAfterDelaysTheObject shows that the object waits if the API server requests a longer delay than a request
// may take, and that the log contains the status.
func TestRetryAfterDelaysTheObject(t *testing.T) {
	for name, backoffs := range map[string][]time.Duration{
		"ByDefault": nil, "OnTheSpot": {time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, began := memapi.New(), time.Now()
				var at []string // the times of the patches; the first one is refused
				connection := server.Connect()
				connection.Before = func(_ context.Context, r memapi.Request) error {
					if r.Verb != "patch" {
						return nil
					}
					if at = append(at, time.Since(began).Round(time.Second).String()); len(at) > 1 {
						return nil
					}
					return apierrors.NewTooManyRequests("busy", 40)
				}
				var mu sync.Mutex
				var lines []string
				log := funcr.New(func(_, line string) {
					mu.Lock()
					defer mu.Unlock()
					lines = append(lines, line)
				}, funcr.Options{})
				stop := operateLogged(t, retryAfterConnection{connection}, log,
					reconcilers.Options{APIBackoffs: backoffs},
					registrationFor(t, "configmaps", &handlers.Handler{
						ID: "c", Reason: cause.Create, Call: func(context.Context, *handlers.Invocation) error {
							return nil
						},
					}))
				defer stop()
				people, err := client.New(memapi.Config(server), client.Options{})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				began = time.Now()
				object := &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap",
					"metadata": map[string]any{"name": "one", "namespace": "default"},
				}}
				if err := people.Create(t.Context(), object); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				stop()
				if d := cmp.Diff([]string{"0s", "40s"}, at); d != "" {
					t.Errorf("the patches: -want, +got:\n%s", d)
				}
				mu.Lock()
				defer mu.Unlock()
				text := strings.Join(lines, "\n")
				if !strings.Contains(text, "busy") || strings.Contains(text, "deadline exceeded") {
					t.Errorf("the log must contain the status: %s", text)
				}
			})
		})
	}
}

// retryAfterConnection is a connection that adds the delay of refusals as a header, like an API server.
type retryAfterConnection struct{ next http.RoundTripper }

func (s retryAfterConnection) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := s.next.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusTooManyRequests {
		response.Header.Set("Retry-After", "40")
	}
	return response, err
}
