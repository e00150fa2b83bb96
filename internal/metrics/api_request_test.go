package metrics_test

import (
	"net/http"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/metrics"
)

// TestAPIRequestOf shows how a request is described by its verb and resource.
func TestAPIRequestOf(t *testing.T) {
	const here = "/api/v1/namespaces/n/pods"
	for _, tc := range []struct{ reason, method, path, want string }{
		{"the whole cluster is listed", "GET", "/api/v1/pods", "list pods"},
		{"a namespace is listed", "GET", here + "?limit=500", "list pods"},
		{"a single object is read", "GET", here + "/p", "get pods"},
		{"an object named like a subresource is read", "GET", here + "/status", "get pods"},
		{"a subresource is patched", "PATCH", here + "/p/status", "patch pods/status"},
		{"a custom resource is listed", "GET", "/apis/kopf.dev/v1/kopfexamples", "list kopfexamples.kopf.dev"},
		{"a subresource of a custom resource is updated",
			"PUT", "/apis/x.io/v1/namespaces/n/things/t/status", "update things.x.io/status"},
		{"an API below a path prefix is recognized", "GET", "/clusters/c/apis/kopf.dev/v1/kopfexamples",
			"list kopfexamples.kopf.dev"},
		{"namespaces are listed", "GET", "/api/v1/namespaces", "list namespaces"},
		{"a single namespace is read", "GET", "/api/v1/namespaces/n", "get namespaces"},
		{"the status of a namespace is updated", "PUT", "/api/v1/namespaces/n/status", "update namespaces/status"},
		{"the finalizers of a namespace are updated",
			"PUT", "/api/v1/namespaces/n/finalize", "update namespaces/finalize"},
		{"a watch is not a list", "GET", "/api/v1/pods?watch=true", "watch pods"},
		{"a list with watch=false is not a watch", "GET", "/api/v1/pods?watch=false", "list pods"},
		{"a creation is recognized", "POST", here, "create pods"},
		{"a deletion is recognized", "DELETE", here + "/p", "delete pods"},
		{"a deletion of all objects is recognized", "DELETE", here, "deletecollection pods"},
		{"discovery of a group version has a verb only", "GET", "/apis/kopf.dev/v1", "get"},
		{"discovery of the core group has a verb only", "GET", "/api/v1", "get"},
		{"discovery of groups has a verb only", "GET", "/apis", "get"},
		{"a path outside of the API has a verb only", "GET", "/version", "get"},
		{"an empty path has a verb only", "POST", "", "post"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), tc.method, "https://server"+tc.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := metrics.APIRequestOf(r).String(); got != tc.want {
			t.Errorf("%s: %s %s is %q, want %q", tc.reason, tc.method, tc.path, got, tc.want)
		}
	}
}
