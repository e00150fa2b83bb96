package orchestration_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/orchestration"
	"github.com/kopf-runtime/kopf-runtime/test/kits/discoverytest"
)

// failingOnce fails the first request of a path.
type failingOnce struct {
	*discoverytest.Documents
	path   string
	failed bool
}

func (o *failingOnce) Get(ctx context.Context, path string) ([]byte, error) {
	if path == o.path && !o.failed {
		o.failed = true
		return nil, errors.New("hiccup")
	}
	return o.Documents.Get(ctx, path)
}

// TestOneHiccupOfAScanSplitsNothing shows that one failed request does not split the handlers of a kind, even if
// selectors of different width find it.
func TestOneHiccupOfAScanSplitsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startOrchestratorWith(
			t, nil, &failingOnce{Documents: discoverytest.NewZoo(), path: "/apis/dogs.org/v1"},
			selectedHandler(mustParseSpelling(t, "wolfs.dogs.org"), "a"),
			selectedHandler(mustParseSpelling(t, "category=all"), "b"),
		)
		defer c.end()
		for _, s := range c.servedResources() {
			if s == "dogs.org/v1 wolfs b" {
				t.Errorf("one failed request splits the handlers of a kind: %q", s)
			}
		}
	})
}

// TestSilentGroupAtTheStart shows that a group that does not answer at the start is logged, and served when it answers.
func TestSilentGroupAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := discoverytest.NewZoo()
		server.ErrorByPath = map[string]error{"/apis/dogs.org/v1": errors.New("the extension server is down")}
		c := startOrchestratorWith(t, nil, server, selectedHandler(mustParseSpelling(t, "category=all"), "a"))
		defer c.end()
		c.mu.Lock()
		if !strings.Contains(strings.Join(c.logLines, "\n"), "extension server is down") {
			t.Errorf("the silent group is not logged: %q", c.logLines)
		}
		c.mu.Unlock()
		time.Sleep(10 * time.Second)
		server.ChangeDocuments(func() { server.ErrorByPath = nil })
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := c.servedResources(); !slices.Contains(got, "dogs.org/v1 wolfs a") {
			t.Errorf("two minutes after the server is back, served: %v", got)
		}
	})
}

// TestUnrelatedSilence shows that a removed kind is recognized although an unrelated group does not answer.
func TestUnrelatedSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := discoverytest.NewZoo()
		c := startOrchestratorWith(t, nil, server, selectedHandler(mustParseSpelling(t, "lions"), "a"))
		defer c.end()
		c.requireServed("at the start", "cats.org/v2 lions a")
		server.ChangeDocuments(func() {
			server.ErrorByPath = map[string]error{"/apis/dogs.org/v1": errors.New("the extension server is down")}
			delete(server.ByPath, "/apis/cats.org/v2")
			delete(server.ByPath, "/apis/cats.org/v1")
		})
		c.orchestrator.RequestResync()
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		if got := c.servedResources(); len(got) != 0 {
			t.Errorf("the removed kind is still served: %v", got)
		}
	})
}

// TestPreferenceTurnsToASilentVersion shows that kinds stay served in their version if a newly preferred version does
// not answer.
func TestPreferenceTurnsToASilentVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := discoverytest.NewZoo()
		c := startOrchestratorWith(t, nil, server, selectedHandler(mustParseSpelling(t, "cats.org", "*"), "a"))
		defer c.end()
		server.ChangeDocuments(func() {
			list := server.ByPath["/apis"].(metav1.APIGroupList)
			list.Groups[0].PreferredVersion = list.Groups[0].Versions[1]
			server.ErrorByPath = map[string]error{"/apis/cats.org/v1": errors.New("hiccup")}
		})
		c.orchestrator.RequestResync()
		synctest.Wait()
		c.requireServed("the new version does not answer", "cats.org/v2 lions a", "cats.org/v2 tigers a")
	})
}

type hangingDocuments struct {
	*discoverytest.Documents
	path string
}

func (h *hangingDocuments) Get(ctx context.Context, path string) ([]byte, error) {
	if path == h.path {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.Documents.Get(ctx, path)
}

// TestOneGroupHangs shows that a request that hangs is abandoned, and that the other groups are served.
func TestOneGroupHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startOrchestratorWith(
			t, discoverytest.ServedResources(), &hangingDocuments{discoverytest.NewZoo(), "/apis/dogs.org/v1"},
			exampleHandler("Widget", "", "a"),
			selectedHandler(mustParseSpelling(t, "category=all"), "b"),
		)
		defer c.end()
		time.Sleep(time.Hour)
		synctest.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.journal) == 0 {
			t.Errorf("nothing is served after an hour, logged: %q", c.logLines)
		}
	})
}

// TestUnreachableServer shows that the advice to install a CRD is logged only if the API server answers.
func TestUnreachableServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := func(c *cluster) string {
			c.mu.Lock()
			defer c.mu.Unlock()
			return strings.Join(c.logLines, "\n")
		}
		c := newCluster(t, nil)
		c.listErr = errors.New("connection refused")
		c.start(orchestration.New(
			[]orchestration.SelectedHandler{selectedHandler(mustParseSpelling(t, "widgets.v1.example.org"), "a")},
			c.documents(nil), c, nil,
		))
		defer c.end()
		if got := said(c); !strings.Contains(got, "Cannot ask the API server") || strings.Contains(got, "CRD") {
			t.Errorf("expected a line about the server without advice about CRDs: %q", got)
		}
		c.requireUnanswered("the server is unreachable", "example.org/v1 widgets")
		c.withLock(func() { c.listErr = nil })
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := said(c); !strings.Contains(got, "install its CRD") {
			t.Errorf("expected advice about the CRD: %q", got)
		}
		c.requireUnanswered("a missing resource is an answer")
	})
}
