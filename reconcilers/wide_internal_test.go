package reconcilers

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/resources"
)

// zoo has several groups, versions and categories; one resource cannot be watched, another one not be written to.
func zoo(change ...func(*documents)) *documents {
	one := func(name string, categories ...string) metav1.APIResource {
		return metav1.APIResource{Name: name, SingularName: name[:len(name)-1],
			Kind: strings.ToUpper(name[:1]) + name[1:len(name)-1], Namespaced: true,
			Verbs: metav1.Verbs{"list", "watch", "patch"}, Categories: categories}
	}
	bound, read, events := one("bindings"), one("statistics"), one("events", "all")
	bound.Verbs, read.Verbs = metav1.Verbs{"create"}, metav1.Verbs{"list", "watch"}
	version := func(group, v string) metav1.GroupVersionForDiscovery {
		return metav1.GroupVersionForDiscovery{GroupVersion: group + "/" + v, Version: v}
	}
	d := &documents{of: map[string]any{
		"/api":    metav1.APIVersions{Versions: []string{"v1"}},
		"/api/v1": metav1.APIResourceList{APIResources: []metav1.APIResource{one("pods", "all"), bound, events}},
		"/apis": metav1.APIGroupList{Groups: []metav1.APIGroup{
			{Name: "cats.org", Versions: []metav1.GroupVersionForDiscovery{
				version("cats.org", "v2"), version("cats.org", "v1"),
			}, PreferredVersion: version("cats.org", "v2")},
			{Name: "dogs.org", Versions: []metav1.GroupVersionForDiscovery{
				version("dogs.org", "v1"),
			}, PreferredVersion: version("dogs.org", "v1")},
		}},
		"/apis/cats.org/v1": metav1.APIResourceList{
			APIResources: []metav1.APIResource{one("lions", "all"), one("tigers")},
		},
		"/apis/cats.org/v2": metav1.APIResourceList{
			APIResources: []metav1.APIResource{one("lions", "all"), one("tigers")},
		},
		"/apis/dogs.org/v1": metav1.APIResourceList{APIResources: []metav1.APIResource{one("wolfs", "all"), read}},
	}}
	for _, f := range change {
		f(d)
	}
	return d
}

func spelling(t *testing.T, parts ...string) Selector {
	t.Helper()
	s, err := Spelled(parts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func to(s Selector, id string) Registration { return Registration{s, &handlers.Handler{ID: id}} }

// servedNow are the resources that run, each with its handlers.
func (c *cluster) servedNow() (all []string) {
	for gvk, is := range c.services {
		if !is.ended {
			all = append(all, gvk.Group+"/"+gvk.Version+" "+is.Plural+" "+strings.Join(idsOf(is.own), " "))
		}
	}
	slices.Sort(all)
	return all
}

func TestWideSelections(t *testing.T) {
	watching := func(s Selector) Registration {
		return Registration{s, &handlers.Handler{ID: "w", Family: handlers.Watching}}
	}
	tests := map[string]struct {
		reason string
		own    func(t *testing.T) []Registration
		want   []string
	}{
		"Category": {
			"of all groups, in the preferred versions; events are not left out of categories",
			func(t *testing.T) []Registration { return []Registration{to(spelling(t, "category=all"), "a")} },
			[]string{"/v1 events a", "/v1 pods a", "cats.org/v2 lions a", "dogs.org/v1 wolfs a"},
		},
		"Everything": {
			"without events, and without what cannot be watched or written to",
			func(t *testing.T) []Registration { return []Registration{to(spelling(t, "*"), "a")} },
			[]string{"/v1 pods a", "cats.org/v2 lions a", "cats.org/v2 tigers a", "dogs.org/v1 wolfs a"},
		},
		"EverythingToWatch": {
			"handlers of events write nothing",
			func(t *testing.T) []Registration { return []Registration{watching(spelling(t, "dogs.org", "*"))} },
			[]string{"dogs.org/v1 statistics w", "dogs.org/v1 wolfs w"},
		},
		"EverythingOfAVersion": {
			"a version that is said need not be the preferred one",
			func(t *testing.T) []Registration { return []Registration{to(spelling(t, "cats.org/v1", "*"), "a")} },
			[]string{"cats.org/v1 lions a", "cats.org/v1 tigers a"},
		},
		"NextToOneVersion": {
			"the objects are the same in all versions: all handlers get them in the one that is named",
			func(t *testing.T) []Registration {
				return []Registration{to(spelling(t, "cats.org", "*"), "a"),
					to(Selector{GroupVersion: exampleV1, Kind: "Widget"}, "c"),
					to(spelling(t, "group=cats.org", "version=v1", "kind=Lion"), "d")}
			},
			[]string{"cats.org/v1 lions a d", "cats.org/v2 tigers a", "example.org/v1 widgets c"},
		},
		"Function": {
			"it sees all versions, and a resource is handled in one",
			func(*testing.T) []Registration {
				return []Registration{to(Chosen(func(r resources.Resource) bool { return r.Group == "cats.org" }), "a"),
					to(Chosen(func(r resources.Resource) bool { return r.Plural == "tigers" && r.Preferred }), "b")}
			},
			[]string{"cats.org/v2 lions a", "cats.org/v2 tigers a b"},
		},
		"AmbiguousForAll": {
			"what a name may mean is served by nobody, whatever else selects it",
			func(t *testing.T) []Registration {
				return []Registration{
					to(spelling(t, "kind=Thing"), "a"), to(spelling(t, "cats.org", "*"), "b"),
					to(spelling(t, "things.dogs.org"), "c"),
				}
			},
			[]string{"cats.org/v2 lions b", "cats.org/v2 tigers b"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := zoo()
				if name == "AmbiguousForAll" {
					thing := metav1.APIResource{Name: "things", Kind: "Thing", Verbs: allVerbs}
					for _, path := range []string{"/apis/cats.org/v2", "/apis/dogs.org/v1"} {
						list, _ := server.of[path].(metav1.APIResourceList)
						list.APIResources = append(list.APIResources, thing)
						server.of[path] = list
					}
				}
				c := beginWith(t, served(), server, tc.own(t)...)
				got := c.servedNow()
				c.end()
				if d := cmp.Diff(tc.want, got); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}

func TestWideSelectionsFollowTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zoo()
		c := beginWith(t, nil, server, to(spelling(t, "*"), "a"))
		defer c.end()
		after := func(when string, change func(), want ...string) {
			t.Helper()
			server.become(change)
			c.doubt()
			synctest.Wait()
			if d := cmp.Diff(want, c.servedNow()); d != "" {
				t.Errorf("%s: -want, +got:\n%s", when, d)
			}
		}
		lions, tigers, wolfs, pods := "cats.org/v2 lions a", "cats.org/v2 tigers a", "dogs.org/v1 wolfs a", "/v1 pods a"
		dogs := server.of["/apis/dogs.org/v1"]
		after("at first", func() {}, pods, lions, tigers, wolfs)
		c.wantSaid("what is left out, once", 1)
		after("a part that does not answer proves nothing, and holds up nobody", func() {
			server.failing = map[string]error{"/apis/dogs.org/v1": errors.New("the extension server is down")}
		}, pods, lions, tigers, wolfs)
		after("the parts that answer count", func() { delete(server.of, "/apis/cats.org/v2") }, pods, wolfs)
		after("it is gone in earnest", func() { server.failing = nil; delete(server.of, "/apis/dogs.org/v1") }, pods)
		after("it is back", func() { server.of["/apis/dogs.org/v1"] = dogs }, pods, wolfs)
		after("nor does no answer at all", func() { server.err = errors.New("no connection") }, pods, wolfs)
		after("there is nothing new", func() { server.err = nil }, pods, wolfs)
	})
}

// The lists of the API server are behind what happens to its CRDs.
func TestServingSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zoo()
		cats := server.of["/apis/cats.org/v2"]
		delete(server.of, "/apis/cats.org/v2")
		c := beginWith(t, nil, server, to(spelling(t, "category=all"), "a"))
		defer c.end()
		c.doubt()
		synctest.Wait()
		server.become(func() { server.of["/apis/cats.org/v2"] = cats })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := c.servedNow(); !slices.Contains(got, "cats.org/v2 lions a") {
			t.Errorf("what is listed some seconds after a doubt is not found: %v", got)
		}
		var asked, since int
		server.become(func() { asked = len(server.asked) })
		time.Sleep(time.Minute)
		synctest.Wait()
		server.become(func() { since = len(server.asked) - asked })
		if since != 0 {
			t.Errorf("%d more questions where nothing is in doubt", since)
		}
	})
}
