package orchestration_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery/discoverytest"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/orchestration"
)

// A kind of parents that is found late has the children listed again: only identities may be known of them.
func TestLateParents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, discoverytest.Served(without("clusters")))
		watched := &handlers.Handler{ID: "watched", Family: handlers.Owning}
		watched.Owned = watched
		kind := func(kind string, h *handlers.Handler) orchestration.Registration {
			selector := discovery.OfKind(discoverytest.ExampleV1.WithKind(kind))
			return orchestration.Registration{Selector: selector, Handler: adapters.New(h, nil)}
		}
		c.start(orchestration.New([]orchestration.Registration{
			kind("Widget", watched),
			kind("Cluster", &handlers.Handler{ID: "parent", Family: handlers.Tending, Owned: watched}),
			kind("Cluster", &handlers.Handler{ID: "other", Family: handlers.Changing}),
		}, c.documents(nil), c, nil))
		c.want("without parents", "begin widgets/status watched")
		c.becomes(discoverytest.Served(), nil, time.Hour)
		c.mu.Lock()
		slices.Sort(c.journal) // the two kinds begin at the same time
		c.mu.Unlock()
		c.want("with parents", "begin clusters parent other", "begin widgets/status watched", "end widgets")
		c.becomes(discoverytest.Served(without("clusters")), nil, time.Hour)
		c.want("parents may come back", "end clusters")
		c.becomes(discoverytest.Served(), nil, time.Hour)
		c.want("nothing of their children is missing", "begin clusters parent other")
		c.end()
	})
}
