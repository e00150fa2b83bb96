package orchestration_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/orchestration"
	"github.com/kopf-runtime/kopf-runtime/test/kits/discoverytest"
)

// TestWideSelections shows which resources a wide selector serves, in which version, beside narrower ones.
func TestWideSelections(t *testing.T) {
	watching := func(s discovery.Selector) orchestration.SelectedHandler {
		h := &handlers.Handler{ID: "w", Family: handlers.Watching}
		return orchestration.SelectedHandler{Selector: s, Handler: adapters.New(h, nil)}
	}
	tests := map[string]struct {
		reason        string
		registrations func(t *testing.T) []orchestration.SelectedHandler
		want          []string
	}{
		"Category": {
			"a category covers all groups in their preferred versions, events included",
			func(t *testing.T) []orchestration.SelectedHandler {
				return []orchestration.SelectedHandler{selectedHandler(mustParseSpelling(t, "category=all"), "a")}
			},
			[]string{"/v1 events a", "/v1 pods a", "cats.org/v2 lions a", "dogs.org/v1 wolfs a"},
		},
		"Everything": {
			"the wildcard excludes events and resources that cannot be watched or patched",
			func(t *testing.T) []orchestration.SelectedHandler {
				return []orchestration.SelectedHandler{selectedHandler(mustParseSpelling(t, "*"), "a")}
			},
			[]string{"/v1 pods a", "cats.org/v2 lions a", "cats.org/v2 tigers a", "dogs.org/v1 wolfs a"},
		},
		"EverythingToWatch": {
			"a wildcard for event handlers includes resources that cannot be patched",
			func(t *testing.T) []orchestration.SelectedHandler {
				return []orchestration.SelectedHandler{watching(mustParseSpelling(t, "dogs.org", "*"))}
			},
			[]string{"dogs.org/v1 statistics w", "dogs.org/v1 wolfs w"},
		},
		"EverythingOfAVersion": {
			"a wildcard of a version need not be the preferred one",
			func(t *testing.T) []orchestration.SelectedHandler {
				return []orchestration.SelectedHandler{selectedHandler(mustParseSpelling(t, "cats.org/v1", "*"), "a")}
			},
			[]string{"cats.org/v1 lions a", "cats.org/v1 tigers a"},
		},
		"NextToOneVersion": {
			"a resource named in one version is served in it for all handlers",
			func(t *testing.T) []orchestration.SelectedHandler {
				return []orchestration.SelectedHandler{selectedHandler(mustParseSpelling(t, "cats.org", "*"), "a"),
					selectedHandler(discovery.OfKind(discoverytest.ExampleV1.WithKind("Widget")), "c"),
					selectedHandler(mustParseSpelling(t, "group=cats.org", "version=v1", "kind=Lion"), "d")}
			},
			[]string{"cats.org/v1 lions a d", "cats.org/v2 tigers a", "example.org/v1 widgets c"},
		},
		"NextToAllOfAVersion": {
			"a named resource decides the version, even against an earlier wildcard of another version",
			func(t *testing.T) []orchestration.SelectedHandler {
				return []orchestration.SelectedHandler{selectedHandler(mustParseSpelling(t, "cats.org/v2", "*"), "a"),
					selectedHandler(mustParseSpelling(t, "lions.cats.org"), "b"),
					selectedHandler(mustParseSpelling(t, "group=cats.org", "version=v1", "kind=Lion"), "c")}
			},
			[]string{"cats.org/v1 lions a b c", "cats.org/v2 tigers a"},
		},
		"Function": {
			"a function gets all versions, and the resource is served in one",
			func(*testing.T) []orchestration.SelectedHandler {
				return []orchestration.SelectedHandler{
					selectedHandler(discovery.ByFunc(func(r discovery.Resource) bool { return r.Group == "cats.org" }),
						"a"),
					selectedHandler(discovery.ByFunc(func(r discovery.Resource) bool {
						return r.Plural == "tigers" && r.Preferred
					}), "b"),
				}
			},
			[]string{"cats.org/v2 lions a", "cats.org/v2 tigers a b"},
		},
		"AmbiguousForAll": {
			"an ambiguous name prevents the service of all its candidates",
			func(t *testing.T) []orchestration.SelectedHandler {
				return []orchestration.SelectedHandler{
					selectedHandler(mustParseSpelling(t, "kind=Thing"), "a"),
					selectedHandler(mustParseSpelling(t, "cats.org", "*"), "b"),
					selectedHandler(mustParseSpelling(t, "things.dogs.org"), "c"),
				}
			},
			[]string{"cats.org/v2 lions b", "cats.org/v2 tigers b"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := discoverytest.NewZoo()
				if name == "AmbiguousForAll" {
					thing := metav1.APIResource{Name: "things", Kind: "Thing", Verbs: discoverytest.AllVerbs}
					for _, path := range []string{"/apis/cats.org/v2", "/apis/dogs.org/v1"} {
						server.AddResource(path, thing)
					}
				}
				c := startOrchestratorWith(t, discoverytest.ServedResources(), server, tc.registrations(t)...)
				got := c.servedResources()
				c.end()
				if d := cmp.Diff(tc.want, got); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}

// TestWideSelectionsFollowTheServer shows that a wide selector follows the API server, and that missing answers change
// nothing.
func TestWideSelectionsFollowTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := discoverytest.NewZoo()
		c := startOrchestratorWith(t, nil, server, selectedHandler(mustParseSpelling(t, "*"), "a"))
		defer c.end()
		after := func(when string, change func(), want ...string) {
			t.Helper()
			server.ChangeDocuments(change)
			c.orchestrator.RequestResync()
			synctest.Wait()
			if d := cmp.Diff(want, c.servedResources()); d != "" {
				t.Errorf("%s: -want, +got:\n%s", when, d)
			}
		}
		lions, tigers, wolfs, pods := "cats.org/v2 lions a", "cats.org/v2 tigers a", "dogs.org/v1 wolfs a", "/v1 pods a"
		dogs := server.ByPath["/apis/dogs.org/v1"]
		after("at first", func() {}, pods, lions, tigers, wolfs)
		c.requireLogLines("excluded resources are logged once", 1)
		after("a group that does not answer stays served and does not block others", func() {
			server.ErrorByPath = map[string]error{"/apis/dogs.org/v1": errors.New("the extension server is down")}
		}, pods, lions, tigers, wolfs)
		after("a group that answers is updated", func() { delete(server.ByPath, "/apis/cats.org/v2") }, pods, wolfs)
		after("a removed group ends", func() { server.ErrorByPath = nil; delete(server.ByPath, "/apis/dogs.org/v1") },
			pods)
		after("a returned group is served again", func() { server.ByPath["/apis/dogs.org/v1"] = dogs }, pods, wolfs)
		after("an unreachable server changes nothing", func() { server.Err = errors.New("no connection") }, pods, wolfs)
		after("an answer without changes changes nothing", func() { server.Err = nil }, pods, wolfs)
	})
}

// TestOneVersionOfAResource shows that a resource is served in one version: two services would handle each object twice
// (deviation D-one-version).
func TestOneVersionOfAResource(t *testing.T) {
	for name, own := range map[string]func(t *testing.T) []orchestration.SelectedHandler{
		"PreferredAndNamed": func(t *testing.T) []orchestration.SelectedHandler {
			return []orchestration.SelectedHandler{
				selectedHandler(mustParseSpelling(t, "lions.cats.org"), "a"),
				selectedHandler(mustParseSpelling(t, "group=cats.org", "version=v1", "kind=Lion"), "b"),
			}
		},
		"WideVersions": func(t *testing.T) []orchestration.SelectedHandler {
			return []orchestration.SelectedHandler{
				selectedHandler(mustParseSpelling(t, "cats.org/v1", "*"), "a"),
				selectedHandler(mustParseSpelling(t, "cats.org/v2", "*"), "b"),
			}
		},
		"WideAndNamed": func(t *testing.T) []orchestration.SelectedHandler {
			return []orchestration.SelectedHandler{
				selectedHandler(mustParseSpelling(t, "cats.org/v2", "*"), "a"),
				selectedHandler(mustParseSpelling(t, "group=cats.org", "version=v1", "kind=Lion"), "b"),
			}
		},
		"Functions": func(*testing.T) []orchestration.SelectedHandler {
			lions := func(chosen func(r discovery.Resource) bool) discovery.Selector {
				return discovery.ByFunc(func(r discovery.Resource) bool { return r.Plural == "lions" && chosen(r) })
			}
			return []orchestration.SelectedHandler{
				selectedHandler(lions(func(r discovery.Resource) bool { return r.Version == "v1" }), "a"),
				selectedHandler(lions(func(r discovery.Resource) bool { return r.Preferred }), "b"),
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := startOrchestratorWith(t, nil, discoverytest.NewZoo(), own(t)...)
				defer c.end()
				seen := map[string]bool{}
				for _, one := range c.servedResources() {
					group, rest, _ := strings.Cut(one, "/")
					resource := group + " " + strings.Fields(rest)[1]
					if seen[resource] {
						t.Errorf("a resource is served in two versions: %v", c.servedResources())
					}
					seen[resource] = true
				}
			})
		})
	}
}

// TestAmbiguousInAnotherVersion shows that an ambiguous name prevents the service of its candidates in other versions,
// too.
func TestAmbiguousInAnotherVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := discoverytest.NewZoo()
		thing := metav1.APIResource{Name: "things", Kind: "Thing", Verbs: discoverytest.AllVerbs}
		for _, path := range []string{"/apis/cats.org/v1", "/apis/cats.org/v2", "/apis/dogs.org/v1"} {
			server.AddResource(path, thing)
		}
		c := startOrchestratorWith(
			t, nil, server, selectedHandler(mustParseSpelling(t, "kind=Thing"), "a"),
			selectedHandler(mustParseSpelling(t, "group=cats.org", "version=v1", "kind=Thing"), "b"),
		)
		defer c.end()
		c.requireServed("the same objects in another version")
	})
}
