package discovery_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	gocmp "github.com/google/go-cmp/cmp"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
)

// restClient returns a client whose server answers with a code, 404 by default, and a text.
func restClient(t *testing.T, answer func(r *http.Request) (code int, text string)) rest.Interface {
	t.Helper()
	conn := roundTripper(func(r *http.Request) (*http.Response, error) {
		code, text := answer(r)
		return &http.Response{
			StatusCode: cmp.Or(code, http.StatusNotFound), Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(text)), Request: r,
		}, nil
	})
	client, err := clientdiscovery.NewDiscoveryClientForConfigAndClient(
		&rest.Config{Host: "http://x", QPS: -1}, &http.Client{Transport: conn},
	)
	if err != nil {
		t.Fatal(err)
	}
	return client.RESTClient()
}

// TestCRDWatch shows how the answers of the server decide the next requests, their times, and the resyncs.
func TestCRDWatch(t *testing.T) {
	const (
		list    = `{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"7"}}`
		status  = `{"type":"ERROR","object":{"kind":"Status","code":%d,"message":"no"}}`
		added   = `{"type":"ADDED","object":{"metadata":{"resourceVersion":"8"}}}`
		another = `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}`
	)
	type answer struct {
		code int
		text string
	}
	ok := func(text string) answer { return answer{http.StatusOK, text} }
	for name, tc := range map[string]struct {
		reason       string
		answers      []answer // the last one is repeated
		wantRequests []string // "list", or "watch" with its version, and the seconds
		wantResyncs  []int    // the seconds
		wantWarnings int
	}{
		"Forbidden": {
			"a forbidden list is retried every five minutes, as rights may be granted",
			[]answer{{http.StatusForbidden, "{}"}}, []string{"list 0", "list 300", "list 600"}, nil, 1,
		},
		"Unauthorized": {
			"an unauthorized list is retried every five minutes",
			[]answer{{http.StatusUnauthorized, "{}"}}, []string{"list 0", "list 300", "list 600"}, nil, 1,
		},
		"NotThere": {
			"a missing API of CRDs is retried every five minutes",
			[]answer{{0, "{}"}}, []string{"list 0", "list 300", "list 600"}, nil, 1,
		},
		"ForbiddenWatch": {
			"a forbidden watch is followed by a list after five minutes",
			[]answer{ok(list), {http.StatusForbidden, "{}"}},
			[]string{"list 0", "watch 7 0", "list 300"}, []int{1}, 2,
		},
		"Events": {
			"a change requests a resync, a bookmark does not, and the watch continues at its last version",
			[]answer{ok(list), ok(another + added), ok(another), {http.StatusForbidden, "{}"}},
			[]string{"list 0", "watch 7 0", "watch 8 1", "watch 9 3"}, []int{1, 3}, 2,
		},
		"TooOld": {
			"an expired watch is followed by a list at once",
			[]answer{ok(list), ok(fmt.Sprintf(status, 410)), ok(list), ok(another),
				{http.StatusForbidden, "{}"}},
			[]string{"list 0", "watch 7 0", "list 1", "watch 7 1", "watch 9 3"}, []int{1, 3}, 2,
		},
		"Broken": {
			"a watch that ends with an error is followed by a list",
			[]answer{ok(list), ok(fmt.Sprintf(status, 500)), {http.StatusForbidden, "{}"}},
			[]string{"list 0", "watch 7 0", "list 1"}, []int{1}, 2,
		},
		"Unreadable": {
			"a list that cannot be decoded is repeated", []answer{ok("[]"), {http.StatusForbidden, "{}"}},
			[]string{"list 0", "list 1", "list 301"}, nil, 2,
		},
		"Quiet": {
			"frequent changes request resyncs with growing delays, and a later one at once", []answer{
				ok(list), ok(added), ok(another), ok(another), ok(another), ok(added), {http.StatusForbidden, "{}"},
			},
			[]string{"list 0", "watch 7 0", "watch 8 1", "watch 9 3", "watch 9 7", "watch 9 15"}, []int{1, 3, 16}, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, asked, n := time.Now(), []string(nil), 0
				client := restClient(t, func(r *http.Request) (int, string) {
					time.Sleep(time.Millisecond) // each change is handled before the next answer
					what := "list"
					if r.URL.Query().Get("watch") != "" {
						what = "watch " + r.URL.Query().Get("resourceVersion")
					}
					asked = append(asked, fmt.Sprintf("%s %.0f", what, time.Since(began).Seconds()))
					now := tc.answers[min(n, len(tc.answers)-1)]
					n++
					return now.code, now.text
				})
				warned := 0
				log := funcr.New(func(string, string) { warned++ }, funcr.Options{})
				requested := &resyncRecorder{startTime: began}
				ctx, stop := context.WithTimeout(logf.IntoContext(t.Context(), log), 610*time.Second)
				defer stop()
				watcher := discovery.NewCRDWatcher(client, []discovery.Selector{{Everything: true}})
				watcher.Run(ctx, requested.RequestResync)
				asked = asked[:min(len(asked), len(tc.wantRequests))]
				if d := gocmp.Diff(tc.wantRequests, asked); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
				if d := gocmp.Diff(tc.wantResyncs, requested.resyncTimes); d != "" || warned != tc.wantWarnings {
					t.Errorf("%s: warned %d times; resyncs: -want, +got:\n%s", tc.reason, warned, d)
				}
			})
		})
	}
}

// resyncRecorder records the times of requested resyncs.
type resyncRecorder struct {
	startTime   time.Time
	resyncTimes []int
}

func (c *resyncRecorder) RequestResync() {
	c.resyncTimes = append(c.resyncTimes, int(time.Since(c.startTime).Seconds()))
}
