package orchestration_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/orchestration"
	"github.com/kopf-runtime/kopf-runtime/test/kits/discoverytest"
)

// TestLateParents shows that children are listed again when their first kind of parents is found: before that, the
// cache may hold only their identities.
func TestLateParents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, discoverytest.ServedResources(withoutResource("clusters")))
		watched := &handlers.Handler{ID: "watched", Family: handlers.Parent}
		watched.ParentHandler = watched
		kind := func(kind string, h *handlers.Handler) orchestration.SelectedHandler {
			selector := discovery.OfKind(discoverytest.ExampleV1.WithKind(kind))
			return orchestration.SelectedHandler{Selector: selector, Handler: adapters.New(h, nil)}
		}
		c.start(orchestration.New([]orchestration.SelectedHandler{
			kind("Widget", watched),
			kind("Cluster", &handlers.Handler{ID: "parent", Family: handlers.Child, ParentHandler: watched}),
			kind("Cluster", &handlers.Handler{ID: "other", Family: handlers.Changing}),
		}, c.documents(nil), c, nil))
		c.requireJournal("without parents", "begin widgets/status watched")
		c.setResources(discoverytest.ServedResources(), nil, time.Hour)
		c.mu.Lock()
		slices.Sort(c.journal) // the two kinds begin at the same time
		c.mu.Unlock()
		c.requireJournal("with parents", "begin clusters parent other", "begin widgets/status watched", "end widgets")
		c.setResources(discoverytest.ServedResources(withoutResource("clusters")), nil, time.Hour)
		c.requireJournal("after the removal of the parents", "end clusters")
		c.setResources(discoverytest.ServedResources(), nil, time.Hour)
		c.requireJournal("after the return of the parents", "begin clusters parent other")
		c.end()
	})
}
