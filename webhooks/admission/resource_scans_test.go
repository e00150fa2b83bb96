package admission_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// ports is a resource of another API group.
var ports = memapi.Resource{
	Group: "other.example.org", Version: "v1", Kind: "Port", Plural: "ports", Namespaced: true,
}

// flakyDiscovery is a connection to an API server that fails for some documents of the discovery.
type flakyDiscovery struct {
	http.RoundTripper
	mu      sync.Mutex
	failing string // the path of a document that fails
	scans   int    // requests for the list of groups
}

func (f *flakyDiscovery) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	isFailing := r.URL.Path == f.failing
	if r.URL.Path == "/apis" {
		f.scans++
	}
	f.mu.Unlock()
	if isFailing {
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody, Request: r}, nil
	}
	return f.RoundTripper.RoundTrip(r)
}

// fail makes the document fail from now on, and returns the number of scans since the last call.
func (f *flakyDiscovery) fail(path string) (scans int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	scans, f.scans, f.failing = f.scans, 0, path
	return scans
}

// TestFailingDiscovery shows that a document that fails hides neither the resources of the others, nor those that were
// known before.
func TestFailingDiscovery(t *testing.T) {
	const groups, group = "/apis", "/apis/other.example.org/v1"
	const both = "ports widgets"
	for name, tc := range map[string]struct {
		reason        string
		isNew         bool   // widgets are installed after the start
		first, later  string // the failing documents at the start, and after it
		before, after string // the reviewed resources
	}{
		"Works":       {"all resources are reviewed", false, "", "", both, both},
		"Outage":      {"known resources are reviewed in an outage", false, "", groups, both, both},
		"FirstOutage": {"resources are reviewed when they are known", false, groups, "", "", both},
		"Group":       {"known resources of a failing group are reviewed", false, "", group, both, both},
		"FirstGroup":  {"reviews wait for the first complete scan", false, group, "", "", both},
		"New":         {"a new resource is reviewed", true, "", "", "ports", both},
		"NewInOutage": {"a new resource is not known in an outage", true, "", groups, "ports", "ports"},
		"NewBeside":   {"a failing group does not hide a new resource of another one", true, "", group, "ports", both},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := cluster(ports)
				if !tc.isNew {
					server.Install(widgets)
				}
				discovery := &flakyDiscovery{RoundTripper: server, failing: tc.first}
				o := options(discovery, newRegistration(widgets, "widgets", ""), newRegistration(ports, "ports", ""))
				r := start(t, o)
				defer r.stop(t)
				reviewed := func() string {
					var all []string
					for _, id := range []string{"ports", "widgets"} {
						if len(entries(t, server, validatingResource)[id+".ops.example.org"].Rules) > 0 {
							all = append(all, id)
						}
					}
					return strings.Join(all, " ")
				}
				time.Sleep(20 * time.Minute)
				before := reviewed()
				discovery.fail(tc.later)
				if tc.isNew {
					server.Put(definitionResource, definition())
				}
				time.Sleep(20 * time.Minute)
				if after := reviewed(); before != tc.before || after != tc.after {
					t.Errorf("%s: %q are reviewed, and %q later; want %q and %q", tc.reason, before, after, tc.before,
						tc.after)
				}
			})
		})
	}
}

// TestScansAfterChange shows that a change of a CRD leads to some additional scans, and not to permanent ones.
func TestScansAfterChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster(gadgets)
		discovery := &flakyDiscovery{RoundTripper: server}
		r := start(t, options(discovery, newRegistration(widgets, "quota", "no")))
		defer r.stop(t)
		time.Sleep(time.Minute)
		discovery.fail("")
		server.Put(definitionResource, definition())
		time.Sleep(time.Minute)
		if n := discovery.fail(""); n < 4 || n > 8 {
			t.Errorf("discovery lags behind a change: want the scan of the change and three more, got %d", n)
		}
		time.Sleep(time.Hour)
		if n := discovery.fail(""); n < 11 || n > 13 {
			t.Errorf("want a scan each five minutes, got %d in an hour", n)
		}
	})
}
