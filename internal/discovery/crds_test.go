package discovery_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestCRDWatchesThatFailAgainAndAgain shows that a server that ends every watch with an error is listed with delays.
func TestCRDWatchesThatFailAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists := 0
		conn := roundTripper(func(r *http.Request) (*http.Response, error) {
			body := `{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"7"}}`
			if r.URL.Query().Get("watch") != "" {
				body = `{"type":"ERROR","object":{"kind":"Status","code":500,` +
					`"reason":"InternalError","message":"etcd is out of order"}}` + "\n"
			} else {
				lists++
			}
			return &http.Response{
				StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(body)), Request: r,
			}, nil
		})
		client, err := clientdiscovery.NewDiscoveryClientForConfigAndClient(
			&rest.Config{Host: "http://x", QPS: -1}, &http.Client{Transport: conn},
		)
		if err != nil {
			t.Fatal(err)
		}
		requested := &counter{}
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
		defer stop()
		everything := discovery.Selector{Everything: true}
		discovery.NewCRDWatcher(client.RESTClient(), []discovery.Selector{everything}).Run(ctx, requested.RequestResync)
		if lists > 60 {
			t.Errorf("want at most 60 lists in 10 minutes, got %d, and %d requests for a resync of all resources",
				lists, requested.requests)
		}
	})
}

// TestCRDsThatMayNotBeListed shows that a missing permission is logged with the message of the API server and the
// verbs to grant.
func TestCRDsThatMayNotBeListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := roundTripper(func(r *http.Request) (*http.Response, error) {
			body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,` +
				`"message":"customresourcedefinitions is forbidden: User \"x\" cannot list resource"}`
			return &http.Response{
				StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(body)), Request: r,
			}, nil
		})
		client, err := clientdiscovery.NewDiscoveryClientForConfigAndClient(
			&rest.Config{Host: "http://x", QPS: -1}, &http.Client{Transport: conn},
		)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
		ctx, stop := context.WithTimeout(logf.IntoContext(t.Context(), log), 10*time.Minute)
		defer stop()
		everything := discovery.Selector{Everything: true}
		discovery.NewCRDWatcher(client.RESTClient(), []discovery.Selector{everything}).Run(ctx, func() {})
		if len(lines) != 1 || !strings.Contains(lines[0], "cannot list resource") ||
			!strings.Contains(lines[0], "grant the verbs list and watch on customresourcedefinitions") {
			t.Errorf("want one line with the reason and what to grant, got %q", lines)
		}
	})
}

type counter struct{ requests int }

func (c *counter) RequestResync() { c.requests++ }

// TestCRDsAreNotWatchedInVain shows that CRDs are not watched for groups without a dot, which are built into the API
// server.
func TestCRDsAreNotWatchedInVain(t *testing.T) {
	deployments, err := discovery.ParseSpelling("apps/v1", "deployments")
	if err != nil {
		t.Fatal(err)
	}
	if w := discovery.NewCRDWatcher(nil, []discovery.Selector{deployments}); w != nil {
		t.Error("CRDs are watched for a built-in kind")
	}
	for _, spelling := range []string{"deployments", "widgets.v1.example.org", "*"} {
		s, err := discovery.ParseSpelling(spelling)
		if err != nil {
			t.Fatal(err)
		}
		if discovery.NewCRDWatcher(nil, []discovery.Selector{deployments, s}) == nil {
			t.Errorf("CRDs are not watched for %q", spelling)
		}
	}
}

// TestResyncBackoff shows that an unreachable API server is asked quickly at first, and then every 30 seconds.
func TestResyncBackoff(t *testing.T) {
	backoff := discovery.ResyncBackoff()
	for attempt, want := range []float64{1, 2, 4, 8, 16, 30, 30, 30} {
		if got := backoff.Step(); got.Seconds() != want {
			t.Errorf("before attempt %d: got a delay of %s, want %v seconds", attempt+2, got, want)
		}
	}
}
