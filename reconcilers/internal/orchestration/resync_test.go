package orchestration_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery/discoverytest"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/orchestration"
)

// The lists of the API server are behind what happens to its CRDs.
func TestResyncSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := discoverytest.Zoo()
		cats := server.Of["/apis/cats.org/v2"]
		delete(server.Of, "/apis/cats.org/v2")
		c := beginWith(t, nil, server, to(spelling(t, "category=all"), "a"))
		defer c.end()
		c.orchestrator.RequestResync()
		synctest.Wait()
		server.Become(func() { server.Of["/apis/cats.org/v2"] = cats })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := c.servedNow(); !slices.Contains(got, "cats.org/v2 lions a") {
			t.Errorf("what is listed some seconds after a request is not found: %v", got)
		}
		var asked, since int
		server.Become(func() { asked = len(server.Asked) })
		time.Sleep(time.Minute)
		synctest.Wait()
		server.Become(func() { since = len(server.Asked) - asked })
		if since != 0 {
			t.Errorf("%d more questions where nothing is in doubt", since)
		}
	})
}

// An extension server may serve one kind under two names: these are two resources.
func TestTwoPluralsOfOneKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := discoverytest.Served(discoverytest.With(
			metav1.APIResource{Name: "oldwidgets", SingularName: "oldwidget", Kind: "Widget"},
		))
		c := begin(t, list, on("", "widgets", "a"), on("", "oldwidgets", "b"))
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
			t.Errorf("nothing changed, and yet: %q", c.journal)
		}
	})
}

// Nothing is restarted while nothing changes.
func TestTwoPluralsOfOneKindTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := discoverytest.Zoo()
		server.Add("/apis/dogs.org/v1", metav1.APIResource{
			Name: "oldwolfs", SingularName: "oldwolf", Kind: "Wolf", Verbs: discoverytest.AllVerbs,
		})
		c := beginWith(t, nil, server, to(spelling(t, "dogs.org", "*"), "a"))
		defer c.end()
		c.wantServed("both", "dogs.org/v1 oldwolfs a", "dogs.org/v1 wolfs a")
		c.mu.Lock()
		c.journal = nil
		c.mu.Unlock()
		c.orchestrator.RequestResync()
		synctest.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.journal) != 0 {
			t.Errorf("nothing changed, and yet: %q", c.journal)
		}
	})
}

// What is found later belongs to what was found before, as it is now.
func TestFoundLaterWithAnotherSubresource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := begin(t, discoverytest.Served(), on("", "wheels", "a"), on("Widget", "", "b"))
		defer c.end()
		c.becomes(
			discoverytest.Served(
				without("widgets/status"),
				func(l *metav1.APIResourceList) { l.APIResources[1].SingularName = "wheels" },
			),
			nil, time.Minute,
		)
		c.wantServed("found later, with another subresource", "example.org/v1 widgets a b")
	})
}

// A server that asks for time gets it, whatever requests another resync meanwhile.
func TestResyncObeysRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, nil)
		c.fails = apierrors.NewTooManyRequests("busy", 40)
		c.start(orchestration.New([]orchestration.Registration{on("Widget", "", "a")}, c.documents(nil), c, nil))
		defer c.end()
		c.orchestrator.RequestResync()
		c.becomes(discoverytest.Served(), nil, 39*time.Second)
		c.want("before its time")
		c.becomes(discoverytest.Served(), nil, 2*time.Second)
		c.want("after it", "begin widgets/status a")
	})
}
