package metrics_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// sending answers with the code; 0 is none.
type sending int

func (s sending) RoundTrip(*http.Request) (*http.Response, error) {
	if s == 0 {
		return nil, errBoo
	}
	return &http.Response{StatusCode: int(s), Body: http.NoBody}, nil
}

func TestRequestsAreCounted(t *testing.T) {
	const pods, here = "/api/v1/pods", "/api/v1/namespaces/n/pods"
	for _, tc := range []struct {
		reason, method, path string
		code                 int
		want                 string
	}{
		{"the whole cluster", "GET", pods, 200, "code=2xx operator=op verb=list"},
		{"a namespace", "GET", here + "?limit=500", 200, "code=2xx operator=op verb=list"},
		{"one object", "GET", here + "/p", 404, "code=4xx operator=op verb=get"},
		{"a custom resource", "GET", "/apis/kopf.dev/v1/kopfexamples", 200, "code=2xx operator=op verb=list"},
		{"one of these", "GET", "/apis/kopf.dev/v1/namespaces/n/kopfexamples/k", 200, "code=2xx operator=op verb=get"},
		{"below a path of its own", "GET", "/c/apis/kopf.dev/v1/kopfexamples", 200, "code=2xx operator=op verb=list"},
		{"namespaces are objects, too", "GET", "/api/v1/namespaces", 200, "code=2xx operator=op verb=list"},
		{"and each is one", "GET", "/api/v1/namespaces/n", 200, "code=2xx operator=op verb=get"},
		{"a watch is not a list", "GET", pods + "?watch=true", 200, "code=2xx operator=op verb=watch"},
		{"too old", "GET", pods + "?watch=true", 410, "code=4xx operator=op verb=watch"},
		{"discovery", "GET", "/apis/kopf.dev/v1", 200, "code=2xx operator=op verb=get"},
		{"discovery of the core", "GET", "/api", 200, "code=2xx operator=op verb=get"},
		{"no resource at all", "GET", "/version", 500, "code=5xx operator=op verb=get"},
		{"events", "POST", "/api/v1/namespaces/n/events", 201, "code=2xx operator=op verb=create"},
		{"a replacement", "PUT", here + "/p", 409, "code=4xx operator=op verb=update"},
		{"a patch", "PATCH", here + "/p/status", 422, "code=4xx operator=op verb=patch"},
		{"a deletion", "DELETE", here + "/p", 200, "code=2xx operator=op verb=delete"},
		{"of all", "DELETE", here, 200, "code=2xx operator=op verb=deletecollection"},
		{"nobody has answered", "GET", pods, 0, "code=error operator=op verb=list"},
	} {
		registry := prometheus.NewRegistry()
		request, err := http.NewRequestWithContext(t.Context(), tc.method, "https://api"+tc.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := made(t, "op", registry).Around(sending(tc.code).RoundTrip)(request)
		if (err != nil) != (tc.code == 0) {
			t.Errorf("%s: error %v", tc.reason, err)
		}
		if err == nil {
			_ = response.Body.Close()
		}
		got := gathered(t, registry)
		want := map[string]float64{"api_requests_total " + tc.want: 1}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s %s: -want, +got:\n%s", tc.reason, tc.method, tc.path, d)
		}
	}
}
