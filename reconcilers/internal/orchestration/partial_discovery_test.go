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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery/discoverytest"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/orchestration"
)

// once fails for the first request of a path.
type once struct {
	*discoverytest.Documents
	path   string
	failed bool
}

func (o *once) Get(ctx context.Context, path string) ([]byte, error) {
	if path == o.path && !o.failed {
		o.failed = true
		return nil, errors.New("hiccup")
	}
	return o.Documents.Get(ctx, path)
}

// So it does for searches of different width.
func TestOneHiccupOfAScanSplitsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := beginWith(
			t, nil, &once{Documents: discoverytest.Zoo(), path: "/apis/dogs.org/v1"},
			to(spelling(t, "wolfs.dogs.org"), "a"),
			to(spelling(t, "category=all"), "b"),
		)
		defer c.end()
		for _, s := range c.servedNow() {
			if s == "dogs.org/v1 wolfs b" {
				t.Errorf("one hiccup splits the handlers of a kind: %q", s)
			}
		}
	})
}

// A part that is silent at the start is told of, and taken up when it speaks.
func TestSilentGroupAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := discoverytest.Zoo()
		server.Failing = map[string]error{"/apis/dogs.org/v1": errors.New("the extension server is down")}
		c := beginWith(t, nil, server, to(spelling(t, "category=all"), "a"))
		defer c.end()
		c.mu.Lock()
		if !strings.Contains(strings.Join(c.said, "\n"), "extension server is down") {
			t.Errorf("nobody is told: %q", c.said)
		}
		c.mu.Unlock()
		time.Sleep(10 * time.Second)
		server.Become(func() { server.Failing = nil })
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := c.servedNow(); !slices.Contains(got, "dogs.org/v1 wolfs a") {
			t.Errorf("two minutes after the server is back: %v", got)
		}
	})
}

// What is gone is gone, whatever other groups do not say.
func TestUnrelatedSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := discoverytest.Zoo()
		c := beginWith(t, nil, server, to(spelling(t, "lions"), "a"))
		defer c.end()
		c.wantServed("at first", "cats.org/v2 lions a")
		server.Become(func() {
			server.Failing = map[string]error{"/apis/dogs.org/v1": errors.New("the extension server is down")}
			delete(server.Of, "/apis/cats.org/v2")
			delete(server.Of, "/apis/cats.org/v1")
		})
		c.orchestrator.RequestResync()
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		if got := c.servedNow(); len(got) != 0 {
			t.Errorf("its own group says that it is gone: %v", got)
		}
	})
}

// A version that does not answer proves nothing of the others.
func TestPreferenceTurnsToASilentVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := discoverytest.Zoo()
		c := beginWith(t, nil, server, to(spelling(t, "cats.org", "*"), "a"))
		defer c.end()
		server.Become(func() {
			list := server.Of["/apis"].(metav1.APIGroupList)
			list.Groups[0].PreferredVersion = list.Groups[0].Versions[1]
			server.Failing = map[string]error{"/apis/cats.org/v1": errors.New("hiccup")}
		})
		c.orchestrator.RequestResync()
		synctest.Wait()
		c.wantServed("a hiccup proves nothing", "cats.org/v2 lions a", "cats.org/v2 tigers a")
	})
}

type hanging struct {
	*discoverytest.Documents
	path string
}

func (h *hanging) Get(ctx context.Context, path string) ([]byte, error) {
	if path == h.path {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.Documents.Get(ctx, path)
}

// A request that hangs is given up, and the others are served.
func TestOneGroupHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := beginWith(
			t, discoverytest.Served(), &hanging{discoverytest.Zoo(), "/apis/dogs.org/v1"}, on("Widget", "", "a"),
			to(spelling(t, "category=all"), "b"),
		)
		defer c.end()
		time.Sleep(time.Hour)
		synctest.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.journal) == 0 {
			t.Errorf("nothing is served after an hour, and nothing is said: %q", c.said)
		}
	})
}

// Who cannot be asked is not told to install anything.
func TestUnreachableServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := func(c *cluster) string {
			c.mu.Lock()
			defer c.mu.Unlock()
			return strings.Join(c.said, "\n")
		}
		c := newCluster(t, nil)
		c.fails = errors.New("connection refused")
		c.start(orchestration.New(
			[]orchestration.Registration{to(spelling(t, "widgets.v1.example.org"), "a")}, c.documents(nil), c, nil,
		))
		defer c.end()
		if got := said(c); !strings.Contains(got, "Cannot ask the API server") || strings.Contains(got, "CRD") {
			t.Errorf("nobody answers: %q", got)
		}
		c.wantUnanswered("nobody answers", "example.org/v1 widgets")
		c.change(func() { c.fails = nil })
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := said(c); !strings.Contains(got, "install its CRD") {
			t.Errorf("the server answers, and has no such resource: %q", got)
		}
		c.wantUnanswered("that there is no such resource is an answer")
	})
}
