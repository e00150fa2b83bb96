package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// unreachableUntil is a connection on which some paths cannot be reached before a certain time.
type unreachableUntil struct {
	server http.RoundTripper
	paths  func(path string) bool
	until  time.Time
}

// RoundTrip fails for these paths until that time.
func (d unreachableUntil) RoundTrip(r *http.Request) (*http.Response, error) {
	if time.Now().Before(d.until) && d.paths(r.URL.Path) {
		return nil, errors.New("connection refused")
	}
	return d.server.RoundTrip(r)
}

// TestIndexedKindsThatAreNotKnownYet shows that handlers wait for filled indices even if the server is down when the
// operator starts.
func TestIndexedKindsThatAreNotKnownYet(t *testing.T) {
	all := func(string) bool { return true }
	group := func(path string) bool { return strings.Contains(path, "x.io") }
	tests := map[string]struct {
		reason string
		paths  func(path string) bool
		once   bool
		want   string
	}{
		"Server": {"handlers wait while the whole server is down", all, false, "60 things after minutes"},
		"Once":   {"handlers wait for the first scan, even with ScanOnce", all, true, "60 things after minutes"},
		"Group": {"handlers of a known kind wait for an indexed kind that is unknown yet", group, false,
			"60 things after minutes"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
				things := memapi.Resource{Group: "x.io", Version: "v1", Kind: "Thing", Plural: "things"}
				server.Install(things)
				for n := range 60 {
					name := fmt.Sprint("t", n)
					server.Put(things, map[string]any{
						"apiVersion": "x.io/v1", "kind": "Thing",
						"metadata": map[string]any{"name": name, "uid": name},
					})
				}
				p.create("ConfigMap", "c")
				index, filling := byName()
				began, got := time.Now(), []string{}
				h := &handlers.Handler{
					ID: "h", Family: handlers.Changing, Reason: cause.Create,
					Call: func(context.Context, *handlers.Invocation) error {
						when := "at once"
						if time.Since(began) > 5*time.Minute {
							when = "after minutes"
						}
						got = append(got, fmt.Sprintf("%d things %s", index.Len(), when))
						return nil
					},
				}
				way := unreachableUntil{delayLists(server, "things", steady(time.Second)), tc.paths,
					began.Add(6 * time.Minute)}
				stop := operateAll(t, way, reconcilers.Options{ScanOnce: tc.once}, registrationFor(t, "configmaps", h),
					registrationFor(t, "things.v1.x.io", filling))
				time.Sleep(20 * time.Minute)
				stop()
				if len(got) != 1 || got[0] != tc.want {
					t.Errorf("%s: want %q, got %q", tc.reason, tc.want, got)
				}
			})
		})
	}
}
