package metrics_test

import (
	"net/http"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/metrics"
)

func TestAPIRequestOf(t *testing.T) {
	const here = "/api/v1/namespaces/n/pods"
	for _, tc := range []struct{ reason, method, path, want string }{
		{"the whole cluster", "GET", "/api/v1/pods", "list pods"},
		{"a namespace", "GET", here + "?limit=500", "list pods"},
		{"one object", "GET", here + "/p", "get pods"},
		{"one whose name says otherwise", "GET", here + "/status", "get pods"},
		{"a part of it", "PATCH", here + "/p/status", "patch pods/status"},
		{"a custom resource", "GET", "/apis/kopf.dev/v1/kopfexamples", "list kopfexamples.kopf.dev"},
		{"a part of one", "PUT", "/apis/x.io/v1/namespaces/n/things/t/status", "update things.x.io/status"},
		{"below a path of its own", "GET", "/clusters/c/apis/kopf.dev/v1/kopfexamples", "list kopfexamples.kopf.dev"},
		{"namespaces are objects, too", "GET", "/api/v1/namespaces", "list namespaces"},
		{"and each is one", "GET", "/api/v1/namespaces/n", "get namespaces"},
		{"which has parts", "PUT", "/api/v1/namespaces/n/status", "update namespaces/status"},
		{"of its own", "PUT", "/api/v1/namespaces/n/finalize", "update namespaces/finalize"},
		{"a watch is not a list", "GET", "/api/v1/pods?watch=true", "watch pods"},
		{"nor is what only says no to it", "GET", "/api/v1/pods?watch=false", "list pods"},
		{"a creation", "POST", here, "create pods"},
		{"a deletion", "DELETE", here + "/p", "delete pods"},
		{"of all", "DELETE", here, "deletecollection pods"},
		{"discovery", "GET", "/apis/kopf.dev/v1", "get"},
		{"of the core", "GET", "/api/v1", "get"},
		{"of groups", "GET", "/apis", "get"},
		{"no API at all", "GET", "/version", "get"},
		{"nor a path", "POST", "", "post"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), tc.method, "https://server"+tc.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := metrics.APIRequestOf(r).String(); got != tc.want {
			t.Errorf("%s: %s %s is %q, not %q", tc.reason, tc.method, tc.path, got, tc.want)
		}
	}
}
