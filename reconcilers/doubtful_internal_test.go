package reconcilers

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/resources"
)

func (c *cluster) wantServed(when string, want ...string) {
	c.t.Helper()
	if d := cmp.Diff(want, c.servedNow()); d != "" {
		c.t.Errorf("%s: -want, +got:\n%s", when, d)
	}
}

// An extension server may serve one kind under two names: these are two resources.
func TestTwoPluralsOfOneKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := served(withAnother(metav1.APIResource{Name: "oldwidgets", SingularName: "oldwidget", Kind: "Widget"}))
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
			c.doubt()
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
		server := zoo(func(d *documents) {
			l := d.of["/apis/dogs.org/v1"].(metav1.APIResourceList)
			l.APIResources = append(
				l.APIResources,
				metav1.APIResource{Name: "oldwolfs", SingularName: "oldwolf", Kind: "Wolf", Verbs: allVerbs},
			)
			d.of["/apis/dogs.org/v1"] = l
		})
		c := beginWith(t, nil, server, to(spelling(t, "dogs.org", "*"), "a"))
		defer c.end()
		c.wantServed("both", "dogs.org/v1 oldwolfs a", "dogs.org/v1 wolfs a")
		c.mu.Lock()
		c.journal = nil
		c.mu.Unlock()
		c.doubt()
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
		c := begin(t, served(), on("", "wheels", "a"), on("Widget", "", "b"))
		defer c.end()
		c.becomes(
			served(
				without("widgets/status"),
				func(l *metav1.APIResourceList) { l.APIResources[1].SingularName = "wheels" },
			),
			nil, time.Minute,
		)
		c.wantServed("found later, with another subresource", "example.org/v1 widgets a b")
	})
}

// once fails for the first request of a path.
type once struct {
	*documents
	path   string
	failed bool
}

func (o *once) Get(ctx context.Context, path string) ([]byte, error) {
	if path == o.path && !o.failed {
		o.failed = true
		return nil, errors.New("hiccup")
	}
	return o.documents.Get(ctx, path)
}

// So it does for searches of different width.
func TestOneHiccupOfAScanSplitsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := beginWith(
			t, nil, &once{documents: zoo(), path: "/apis/dogs.org/v1"}, to(spelling(t, "wolfs.dogs.org"), "a"),
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

// Versions are views of the same objects: two services would handle each of them twice.
func TestOneVersionOfAResource(t *testing.T) {
	for name, own := range map[string]func(t *testing.T) []Registration{
		"PreferredAndNamed": func(t *testing.T) []Registration {
			return []Registration{
				to(spelling(t, "lions.cats.org"), "a"),
				to(spelling(t, "group=cats.org", "version=v1", "kind=Lion"), "b"),
			}
		},
		"WideVersions": func(t *testing.T) []Registration {
			return []Registration{to(spelling(t, "cats.org/v1", "*"), "a"), to(spelling(t, "cats.org/v2", "*"), "b")}
		},
		"WideAndNamed": func(t *testing.T) []Registration {
			return []Registration{
				to(spelling(t, "cats.org/v2", "*"), "a"),
				to(spelling(t, "group=cats.org", "version=v1", "kind=Lion"), "b"),
			}
		},
		"Functions": func(*testing.T) []Registration {
			return []Registration{to(
				Chosen(func(r resources.Resource) bool { return r.Plural == "lions" && r.Version == "v1" }), "a",
			),
				to(Chosen(func(r resources.Resource) bool { return r.Plural == "lions" && r.Preferred }), "b")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := beginWith(t, nil, zoo(), own(t)...)
				defer c.end()
				seen := map[string]bool{}
				for gvk, s := range c.services {
					if seen[s.GroupResource().String()] {
						t.Errorf("one resource is served in two versions: %v (all: %v)", gvk, c.servedNow())
					}
					seen[s.GroupResource().String()] = true
				}
			})
		})
	}
}

// A part that is silent at the start is told of, and taken up when it speaks.
func TestSilentGroupAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zoo()
		server.failing = map[string]error{"/apis/dogs.org/v1": errors.New("the extension server is down")}
		c := beginWith(t, nil, server, to(spelling(t, "category=all"), "a"))
		defer c.end()
		c.mu.Lock()
		if !strings.Contains(strings.Join(c.said, "\n"), "extension server is down") {
			t.Errorf("nobody is told: %q", c.said)
		}
		c.mu.Unlock()
		time.Sleep(10 * time.Second)
		server.become(func() { server.failing = nil })
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
		server := zoo()
		c := beginWith(t, nil, server, to(spelling(t, "lions"), "a"))
		defer c.end()
		c.wantServed("at first", "cats.org/v2 lions a")
		server.become(func() {
			server.failing = map[string]error{"/apis/dogs.org/v1": errors.New("the extension server is down")}
			delete(server.of, "/apis/cats.org/v2")
			delete(server.of, "/apis/cats.org/v1")
		})
		c.doubt()
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
		server := zoo()
		c := beginWith(t, nil, server, to(spelling(t, "cats.org", "*"), "a"))
		defer c.end()
		server.become(func() {
			list := server.of["/apis"].(metav1.APIGroupList)
			list.Groups[0].PreferredVersion = list.Groups[0].Versions[1]
			server.failing = map[string]error{"/apis/cats.org/v1": errors.New("hiccup")}
		})
		c.doubt()
		synctest.Wait()
		c.wantServed("a hiccup proves nothing", "cats.org/v2 lions a", "cats.org/v2 tigers a")
	})
}

// Nobody handles what a name may mean, in whatever version.
func TestAmbiguousInAnotherVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zoo()
		thing := metav1.APIResource{Name: "things", Kind: "Thing", Verbs: allVerbs}
		for _, path := range []string{"/apis/cats.org/v1", "/apis/cats.org/v2", "/apis/dogs.org/v1"} {
			list, _ := server.of[path].(metav1.APIResourceList)
			list.APIResources = append(list.APIResources, thing)
			server.of[path] = list
		}
		c := beginWith(
			t, nil, server, to(spelling(t, "kind=Thing"), "a"),
			to(spelling(t, "group=cats.org", "version=v1", "kind=Thing"), "b"),
		)
		defer c.end()
		c.wantServed("the same objects in another version")
	})
}

type hanging struct {
	*documents
	path string
}

func (h *hanging) Get(ctx context.Context, path string) ([]byte, error) {
	if path == h.path {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.documents.Get(ctx, path)
}

// A request that hangs is given up, and the others are served.
func TestOneGroupHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := beginWith(
			t, served(), &hanging{zoo(), "/apis/dogs.org/v1"}, on("Widget", "", "a"),
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

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A server that ends every watch with an error is not asked for everything all the time.
func TestDefinitionsThatFailAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists := 0
		conn := roundTripper(func(r *http.Request) (*http.Response, error) {
			body := `{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"7"}}`
			if r.URL.Query().Get("watch") != "" {
				body = `{"type":"ERROR","object":{"kind":"Status","code":500,` +
					`"reason":"InternalError","message":"etcd is out of order"}}` + "\n"
			} else {
				lists++
			}
			return &http.Response{
				StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(body)), Request: r,
			}, nil
		})
		d, err := discovery.NewDiscoveryClientForConfigAndClient(
			&rest.Config{Host: "http://x", QPS: -1}, &http.Client{Transport: conn},
		)
		if err != nil {
			t.Fatal(err)
		}
		doubts := 0
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
		defer stop()
		definitions{d}.follow(ctx, func() { doubts++ })
		if lists > 60 {
			t.Errorf("in 10 minutes: %d lists, %d doubts, each of which asks for all of the server", lists, doubts)
		}
	})
}

// Resume handlers that join a kind later are told of the objects.
func TestResumeHandlersThatJoinLater(t *testing.T) {
	e := &engine{}
	s := scope{widgets.GroupResource(), ""}
	e.memory(s, []*handlers.Handler{{ID: "c"}})
	if m := e.memory(s, []*handlers.Handler{{ID: "c"}, {ID: "r", Initial: true}}); !m.resuming {
		t.Error("a resume handler that joins the kind later is never told of any object")
	}
}

// Versions are views of the same objects: nothing is met anew.
func TestMemoryOfAnotherVersion(t *testing.T) {
	e := &engine{}
	own := []*handlers.Handler{{ID: "r", Initial: true}}
	v2 := widgets
	v2.Version = "v2"
	e.memory(scope{widgets.GroupResource(), ""}, own).endListing()
	if !e.memory(scope{v2.GroupResource(), ""}, own).done {
		t.Error("all objects are met for the first time again")
	}
}

// What was in the way of a kind may have gone.
func TestRefusedKindsAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here := elected{channel: make(chan struct{})}
		one := &engine{Options: Options{Name: "one", Prefix: "p"}, manager: here}
		two := &engine{Options: Options{Name: "two", Prefix: "p"}, manager: here}
		leave, err := one.occupy(widgets)
		if err != nil {
			t.Fatal(err)
		}
		tried := 0
		ctx, stop := context.WithCancel(t.Context())
		s := newServing(
			[]Registration{on("Widget", "", "a")},
			lister(func(context.Context, string) (*metav1.APIResourceList, error) { return served(), nil }),
		)
		served := false
		s.run = func(ctx context.Context, r Resource, own []*handlers.Handler) { // as engine.serve
			tried++
			leave, err := two.occupy(r)
			if err != nil {
				return
			}
			served = true
			<-ctx.Done()
			leave()
		}
		done := make(chan struct{})
		go func() { defer close(done); s.discover(ctx) }()
		time.Sleep(time.Minute)
		leave() // the other operator serves it no more: its category has changed
		time.Sleep(time.Hour)
		synctest.Wait()
		if !served {
			t.Errorf("free for an hour, and not served: tried %d times", tried)
		}
		stop()
		<-done
	})
}
