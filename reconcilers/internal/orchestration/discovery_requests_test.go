package orchestration_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/test/kits/discoverytest"
)

// takeRequestCount returns the number of requests for a path since the last call.
func takeRequestCount(server *discoverytest.Documents, path string) (n int) {
	server.ChangeDocuments(func() {
		for _, one := range server.RequestedPaths {
			if one == path {
				n++
			}
		}
		server.RequestedPaths = nil
	})
	return n
}

// TestQuestionsAtRest shows that an idle operator sends one discovery request per interval.
func TestQuestionsAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := discoverytest.NewZoo()
		c := startOrchestratorWith(t, nil, server, selectedHandler(mustParseSpelling(t, "lions.cats.org"), "a"),
			selectedHandler(mustParseSpelling(t, "cats.org", "*"), "b"))
		defer c.end()
		if n := takeRequestCount(server, "/apis/cats.org/v2"); n != 1 {
			t.Errorf("at the start: asked %d times, want once", n)
		}
		time.Sleep(discovery.ResyncInterval - time.Second)
		synctest.Wait()
		if n := takeRequestCount(server, "/apis/cats.org/v2"); n != 0 || c.announcedRounds() != 1 {
			t.Errorf("before the interval: asked %d times in %d rounds, want none", n, c.announcedRounds()-1)
		}
		time.Sleep(discovery.ResyncInterval)
		synctest.Wait()
		if n := takeRequestCount(server, "/apis/cats.org/v2"); n != 1 || c.announcedRounds() != 2 {
			t.Errorf("after the interval: asked %d times in %d rounds, want one", n, c.announcedRounds()-1)
		}
	})
}

// TestQuestionsAfterARequest shows that a resync request leads to several rounds for everything served, as changes of a
// CRD reach the lists of the API server late.
func TestQuestionsAfterARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := discoverytest.NewZoo()
		c := startOrchestratorWith(t, nil, server, selectedHandler(mustParseSpelling(t, "lions.cats.org"), "a"))
		defer c.end()
		takeRequestCount(server, "")
		c.orchestrator.RequestResync()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := takeRequestCount(server, "/apis/cats.org/v2"); n != 4 || c.announcedRounds() != 5 {
			t.Errorf("asked %d times in %d rounds, want four of each", n, c.announcedRounds()-1)
		}
	})
}

// TestQuestionsForWhatIsMissing shows that the repeated requests for a missing kind do not include other kinds.
func TestQuestionsForWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := discoverytest.NewZoo()
		dogs := server.ByPath["/apis/dogs.org/v1"]
		delete(server.ByPath, "/apis/dogs.org/v1")
		c := startOrchestratorWith(
			t, nil, server, selectedHandler(mustParseSpelling(t, "cats.org/v2", "*"), "a"),
			selectedHandler(mustParseSpelling(t, "dogs.org/v1", "*"), "b"),
		)
		defer c.end()
		takeRequestCount(server, "")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		var paths []string
		server.ChangeDocuments(func() { paths = slices.Clone(server.RequestedPaths) })
		if slices.Contains(paths, "/apis/cats.org/v2") || !slices.Contains(paths, "/apis/dogs.org/v1") {
			t.Errorf("asked for %s", strings.Join(paths, ", "))
		}
		server.ChangeDocuments(func() { server.ByPath["/apis/dogs.org/v1"] = dogs })
		time.Sleep(time.Minute)
		synctest.Wait()
		c.requireServed("with the missing group", "cats.org/v2 lions a", "cats.org/v2 tigers a", "dogs.org/v1 wolfs b")
	})
}

// TestFoundForOthers shows that a resource found by one selector is also served for wider selectors that already found
// others.
func TestFoundForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := discoverytest.NewZoo()
		dogs := server.ByPath["/apis/dogs.org/v1"]
		delete(server.ByPath, "/apis/dogs.org/v1")
		c := startOrchestratorWith(t, nil, server, selectedHandler(mustParseSpelling(t, "category=all"), "a"),
			selectedHandler(mustParseSpelling(t, "wolfs.dogs.org"), "b"))
		defer c.end()
		time.Sleep(10 * time.Second)
		server.ChangeDocuments(func() { server.ByPath["/apis/dogs.org/v1"] = dogs })
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := c.servedResources(); !slices.Contains(got, "dogs.org/v1 wolfs a b") {
			t.Errorf("a minute later, served: %v", got)
		}
	})
}
