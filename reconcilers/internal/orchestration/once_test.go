package orchestration_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery/discoverytest"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/orchestration"
)

func TestOnce(t *testing.T) {
	lost := errors.New("the connection is lost")
	tests := map[string]struct {
		reason string
		list   *metav1.APIResourceList
		fails  error
		play   func(c *cluster)
	}{
		"Gone": {
			"what was found goes on being served", discoverytest.Served(), nil, func(c *cluster) {
				c.want("at once", "begin widgets/status a")
				c.becomes(discoverytest.Served(without("widgets")), nil, 24*time.Hour)
				c.becomesUnfound(nil, nil)
				c.want("a day later")
			},
		},
		"Come": {
			"what was not there is not served, and it is said how to change that",
			discoverytest.Served(without("widgets")), nil, func(c *cluster) {
				if said := strings.Join(c.said, ""); !strings.Contains(said, "scanning is disabled") {
					c.t.Errorf("said: %q", said)
				}
				c.becomes(discoverytest.Served(), nil, 24*time.Hour)
				c.want("a day later")
			},
		},
		"NoAnswer": {
			"a server that does not answer has not said anything", nil, lost, func(c *cluster) {
				c.want("at once")
				c.becomes(discoverytest.Served(), nil, time.Minute)
				c.want("a minute after it can be reached", "begin widgets/status a")
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, tc.list)
				c.fails = tc.fails
				c.start(orchestration.NewOnce([]orchestration.Registration{on("Widget", "", "a")}, c.documents(nil), c))
				defer c.end()
				tc.play(c)
			})
		})
	}
}
