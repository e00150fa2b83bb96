package orchestration_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/orchestration"
	"github.com/kopf-runtime/kopf-runtime/test/kits/discoverytest"
)

// TestResyncSettles shows that a resync request leads to repeated rounds, as lists of the API server lag behind its
// CRDs, and that they stop.
func TestResyncSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := discoverytest.NewZoo()
		cats := server.ByPath["/apis/cats.org/v2"]
		delete(server.ByPath, "/apis/cats.org/v2")
		c := startOrchestratorWith(t, nil, server, selectedHandler(mustParseSpelling(t, "category=all"), "a"))
		defer c.end()
		c.orchestrator.RequestResync()
		synctest.Wait()
		server.ChangeDocuments(func() { server.ByPath["/apis/cats.org/v2"] = cats })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := c.servedResources(); !slices.Contains(got, "cats.org/v2 lions a") {
			t.Errorf("a kind listed ten seconds after the request is not served: %v", got)
		}
		var asked, since int
		server.ChangeDocuments(func() { asked = len(server.RequestedPaths) })
		time.Sleep(time.Minute)
		synctest.Wait()
		server.ChangeDocuments(func() { since = len(server.RequestedPaths) - asked })
		if since != 0 {
			t.Errorf("sent %d more requests although every kind is found", since)
		}
	})
}

// TestTwoPluralsOfOneKind shows that one kind under two plurals is two resources, and that resyncs restart neither.
func TestTwoPluralsOfOneKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := discoverytest.ServedResources(discoverytest.WithResource(
			metav1.APIResource{Name: "oldwidgets", SingularName: "oldwidget", Kind: "Widget"},
		))
		c := startOrchestrator(t, list, exampleHandler("", "widgets", "a"), exampleHandler("", "oldwidgets", "b"))
		defer c.end()
		c.mu.Lock()
		j := slices.Clone(c.journal)
		c.mu.Unlock()
		t.Log("journal:", j)
		c.mu.Lock()
		c.journal = nil
		c.mu.Unlock()
		for range 3 {
			c.orchestrator.RequestResync()
			synctest.Wait()
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.journal) != 0 {
			t.Errorf("services were restarted without a change: %q", c.journal)
		}
	})
}

// TestTwoPluralsOfOneKindTogether shows that a wide selector serves both plurals of a kind, and that resyncs restart
// neither.
func TestTwoPluralsOfOneKindTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := discoverytest.NewZoo()
		server.AddResource("/apis/dogs.org/v1", metav1.APIResource{
			Name: "oldwolfs", SingularName: "oldwolf", Kind: "Wolf", Verbs: discoverytest.AllVerbs,
		})
		c := startOrchestratorWith(t, nil, server, selectedHandler(mustParseSpelling(t, "dogs.org", "*"), "a"))
		defer c.end()
		c.requireServed("both plurals", "dogs.org/v1 oldwolfs a", "dogs.org/v1 wolfs a")
		c.mu.Lock()
		c.journal = nil
		c.mu.Unlock()
		c.orchestrator.RequestResync()
		synctest.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.journal) != 0 {
			t.Errorf("services were restarted without a change: %q", c.journal)
		}
	})
}

// TestFoundLaterWithAnotherSubresource shows that a selector found later joins the service of its kind in its present
// form.
func TestFoundLaterWithAnotherSubresource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startOrchestrator(t, discoverytest.ServedResources(), exampleHandler("", "wheels", "a"),
			exampleHandler("Widget", "", "b"))
		defer c.end()
		c.setResources(
			discoverytest.ServedResources(
				withoutResource("widgets/status"),
				func(l *metav1.APIResourceList) { l.APIResources[1].SingularName = "wheels" },
			),
			nil, time.Minute,
		)
		c.requireServed("a name found later, with another subresource", "example.org/v1 widgets a b")
	})
}

// TestResyncObeysRetryAfter shows that a Retry-After of the API server is obeyed, even if a resync is requested
// meanwhile.
func TestResyncObeysRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, nil)
		c.listErr = apierrors.NewTooManyRequests("busy", 40)
		c.start(orchestration.New([]orchestration.SelectedHandler{exampleHandler("Widget", "", "a")}, c.documents(nil),
			c, nil))
		defer c.end()
		c.orchestrator.RequestResync()
		c.setResources(discoverytest.ServedResources(), nil, 39*time.Second)
		c.requireJournal("before the delay is over")
		c.setResources(discoverytest.ServedResources(), nil, 2*time.Second)
		c.requireJournal("after the delay", "begin widgets/status a")
	})
}
