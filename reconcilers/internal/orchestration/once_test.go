package orchestration_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/orchestration"
	"github.com/kopf-runtime/kopf-runtime/test/kits/discoverytest"
)

// TestOnce shows that without scanning, the kinds are determined once, at the first answer of the API server.
func TestOnce(t *testing.T) {
	lost := errors.New("the connection is lost")
	tests := map[string]struct {
		reason string
		list   *metav1.APIResourceList
		fails  error
		play   func(c *cluster)
	}{
		"Gone": {
			"without scanning, a kind is served even after its removal", discoverytest.ServedResources(), nil,
			func(c *cluster) {
				c.requireJournal("after the start", "begin widgets/status a")
				c.setResources(discoverytest.ServedResources(withoutResource("widgets")), nil, 24*time.Hour)
				c.setResourcesAndResync(nil, nil)
				c.requireJournal("a day later")
			},
		},
		"Come": {
			"without scanning, a kind that is missing at the start is never served, and the log says why",
			discoverytest.ServedResources(withoutResource("widgets")), nil, func(c *cluster) {
				if said := strings.Join(c.logLines, ""); !strings.Contains(said, "scanning is disabled") {
					c.t.Errorf("the log does not mention the setting: %q", said)
				}
				c.setResources(discoverytest.ServedResources(), nil, 24*time.Hour)
				c.requireJournal("a day later")
			},
		},
		"NoAnswer": {
			"without scanning, an unreachable server is asked again until it answers", nil, lost, func(c *cluster) {
				c.requireJournal("while unreachable")
				c.setResources(discoverytest.ServedResources(), nil, time.Minute)
				c.requireJournal("a minute after the server is reachable", "begin widgets/status a")
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, tc.list)
				c.listErr = tc.fails
				c.start(orchestration.NewOnce([]orchestration.SelectedHandler{exampleHandler("Widget", "", "a")},
					c.documents(nil),
					c))
				defer c.end()
				tc.play(c)
			})
		})
	}
}
