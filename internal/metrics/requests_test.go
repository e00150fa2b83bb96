package metrics_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// fixedStatus responds with the code, or with an error for 0.
type fixedStatus int

func (s fixedStatus) RoundTrip(*http.Request) (*http.Response, error) {
	if s == 0 {
		return nil, errBoo
	}
	return &http.Response{StatusCode: int(s), Body: http.NoBody}, nil
}

// TestRequestsAreCounted shows that requests are counted by verb and status class.
func TestRequestsAreCounted(t *testing.T) {
	const pods, here = "/api/v1/pods", "/api/v1/namespaces/n/pods"
	for _, tc := range []struct {
		reason, method, path string
		code                 int
		want                 string
	}{
		{"a list of the cluster is counted", "GET", pods, 200, "code=2xx operator=op verb=list"},
		{"a list of a namespace is counted", "GET", here + "?limit=500", 200, "code=2xx operator=op verb=list"},
		{"a read that fails is counted by its code", "GET", here + "/p", 404, "code=4xx operator=op verb=get"},
		{"a list of a custom resource is counted",
			"GET", "/apis/kopf.dev/v1/kopfexamples", 200, "code=2xx operator=op verb=list"},
		{"a read of a custom resource is counted", "GET", "/apis/kopf.dev/v1/namespaces/n/kopfexamples/k",
			200, "code=2xx operator=op verb=get"},
		{"a list below a path prefix is counted",
			"GET", "/c/apis/kopf.dev/v1/kopfexamples", 200, "code=2xx operator=op verb=list"},
		{"a list of namespaces is counted", "GET", "/api/v1/namespaces", 200, "code=2xx operator=op verb=list"},
		{"a read of a namespace is counted", "GET", "/api/v1/namespaces/n", 200, "code=2xx operator=op verb=get"},
		{"a watch is counted as such", "GET", pods + "?watch=true", 200, "code=2xx operator=op verb=watch"},
		{"a watch that expired is counted by its code",
			"GET", pods + "?watch=true", 410, "code=4xx operator=op verb=watch"},
		{"discovery is counted as a read", "GET", "/apis/kopf.dev/v1", 200, "code=2xx operator=op verb=get"},
		{"discovery of the core group is counted as a read", "GET", "/api", 200, "code=2xx operator=op verb=get"},
		{"a path outside of the API is counted as a read", "GET", "/version", 500, "code=5xx operator=op verb=get"},
		{"a creation of an event is counted",
			"POST", "/api/v1/namespaces/n/events", 201, "code=2xx operator=op verb=create"},
		{"a replacement is counted as an update", "PUT", here + "/p", 409, "code=4xx operator=op verb=update"},
		{"a patch is counted", "PATCH", here + "/p/status", 422, "code=4xx operator=op verb=patch"},
		{"a deletion is counted", "DELETE", here + "/p", 200, "code=2xx operator=op verb=delete"},
		{"a deletion of all objects is counted", "DELETE", here, 200, "code=2xx operator=op verb=deletecollection"},
		{"a request without a response is counted as an error", "GET", pods, 0, "code=error operator=op verb=list"},
	} {
		registry := prometheus.NewRegistry()
		request, err := http.NewRequestWithContext(t.Context(), tc.method, "https://api"+tc.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := newOperatorMetrics(t, "op", registry).WrapRoundTrip(fixedStatus(tc.code).RoundTrip)(request)
		if (err != nil) != (tc.code == 0) {
			t.Errorf("%s: error %v", tc.reason, err)
		}
		if err == nil {
			_ = response.Body.Close()
		}
		got := gatherMetrics(t, registry)
		want := map[string]float64{"api_requests_total " + tc.want: 1}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s %s: -want, +got:\n%s", tc.reason, tc.method, tc.path, d)
		}
	}
}
