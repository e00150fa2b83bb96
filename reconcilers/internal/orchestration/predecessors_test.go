package orchestration_test

import (
	"errors"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/controller"
	"github.com/kopf-runtime/kopf-runtime/test/kits/discoverytest"
)

// TestReasonsOfEnds shows that a removed kind ends with ErrRemoved, so that its objects are forgotten, and a kind that
// changes its version with ErrRestarting.
func TestReasonsOfEnds(t *testing.T) {
	lionsOfV2 := func(server *discoverytest.Documents) { delete(server.ByPath, "/apis/cats.org/v2") }
	tests := map[string]struct {
		reason string
		change func(server *discoverytest.Documents)
		want   error
	}{
		"Gone": {
			"a kind without any served version is removed", func(server *discoverytest.Documents) {
				lionsOfV2(server)
				delete(server.ByPath, "/apis/cats.org/v1")
			}, controller.ErrRemoved,
		},
		"AnotherVersion": {
			"a kind with another served version is restarted, as its objects are the same",
			func(server *discoverytest.Documents) {
				lionsOfV2(server)
				groups := server.ByPath["/apis"].(metav1.APIGroupList).Groups
				groups[0].Versions = groups[0].Versions[1:]
				groups[0].PreferredVersion = groups[0].Versions[0]
			}, controller.ErrRestarting,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			synctest.Test(t, func(t *testing.T) {
				server := discoverytest.NewZoo()
				c := startOrchestratorWith(t, nil, server, selectedHandler(mustParseSpelling(t, "lions.cats.org"), "a"),
					selectedHandler(mustParseSpelling(t, "wolfs"), "b"))
				defer c.end()
				server.ChangeDocuments(func() { tc.change(server) })
				c.orchestrator.RequestResync()
				synctest.Wait()
				c.mu.Lock()
				defer c.mu.Unlock()
				if len(c.stopCauses) != 1 || !errors.Is(c.stopCauses[0], tc.want) {
					t.Errorf("ended because of %v, want %v", c.stopCauses, tc.want)
				}
			})
		})
	}
}

// TestSuccession shows that another version of a resource is served after the last handler of the first version has
// returned, as both would handle the same objects. Other resources do not wait.
func TestSuccession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := discoverytest.NewZoo()
		dogs := server.ByPath["/apis/dogs.org/v1"]
		delete(server.ByPath, "/apis/dogs.org/v1")
		c := startOrchestratorWith(t, nil, server, selectedHandler(mustParseSpelling(t, "lions.cats.org"), "a"),
			selectedHandler(mustParseSpelling(t, "wolfs"), "b"))
		defer c.end()
		c.blockEnd = make(chan struct{})
		server.ChangeDocuments(func() {
			server.ByPath["/apis/dogs.org/v1"] = dogs
			delete(server.ByPath, "/apis/cats.org/v2")
			groups := server.ByPath["/apis"].(metav1.APIGroupList).Groups
			groups[0].Versions = groups[0].Versions[1:]
			groups[0].PreferredVersion = groups[0].Versions[0]
		})
		c.orchestrator.RequestResync()
		synctest.Wait()
		c.requireServed("while a handler of the first version runs", "dogs.org/v1 wolfs b")
		c.withLock(func() { close(c.blockEnd); c.blockEnd = nil })
		synctest.Wait()
		c.requireServed("after the handler", "cats.org/v1 lions a", "dogs.org/v1 wolfs b")
	})
}
