package discovery_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/test/kits/discoverytest"
)

// resourceTexts returns the texts of the resources.
func resourceTexts(of []discovery.Resource) (all []string) {
	for _, r := range of {
		all = append(all, r.String())
	}
	return all
}

func mustParseSpelling(t *testing.T, parts ...string) discovery.Selector {
	t.Helper()
	s, err := discovery.ParseSpelling(parts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestResolvePartially shows that the resources of a failing part of the API server are kept, while the answers of
// the other parts count.
func TestResolvePartially(t *testing.T) {
	whole, err := discovery.ListResources(t.Context(), discoverytest.NewZoo())
	if err != nil {
		t.Fatal(err)
	}
	known := func(all ...string) []discovery.Resource {
		return slices.DeleteFunc(slices.Clone(whole), func(r discovery.Resource) bool {
			return !slices.Contains(all, r.String())
		})
	}
	const lions, wolfs, pods, events = "cats.org/v2/lions", "dogs.org/v1/wolfs", "/v1/pods", "/v1/events"
	for name, tc := range map[string]struct {
		reason     string
		selector   discovery.Selector
		before     []string
		want       []string
		incomplete bool
		fails      string // an error about the server, not about the resource
		unserved   string
	}{
		"Kept": {
			"a known resource is kept while its group fails",
			mustParseSpelling(t, "lions.cats.org"), []string{lions}, []string{lions}, true, "", "",
		},
		"NeverSeen": {
			"an unknown resource is an error of the server while its group fails",
			mustParseSpelling(t, "lions.cats.org"), nil, nil, true, "extension", "",
		},
		"OtherGroup": {
			"a failing group does not affect a resource of another group",
			mustParseSpelling(t, "wolfs.dogs.org"), []string{wolfs}, []string{wolfs}, false, "", "",
		},
		"NotInThatGroup": {
			"a resource that its own group lacks is not served, even while another group fails",
			mustParseSpelling(t, "foxes.dogs.org"), nil, nil, false, "",
			"no such resource",
		},
		"FoundElsewhere": {
			"a resource is found while another group fails", mustParseSpelling(t, "wolfs"), nil, []string{wolfs}, true,
			"", "",
		},
		"Category": {
			"a category contains the known resources of a failing group once",
			mustParseSpelling(t, "category=all"), []string{lions, wolfs},
			[]string{pods, events, wolfs, lions}, true, "", "",
		},
		"CategoryAnew": {
			"a category contains the resources of answering groups while another group fails",
			mustParseSpelling(t, "category=all"), nil, []string{pods, events, wolfs}, true, "", "",
		},
		"GoneWithItsGroup": {
			"a former resource of a group that answers is gone", mustParseSpelling(t, "foxes"), []string{pods}, nil,
			true, "",
			"no such resource",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := discoverytest.NewZoo()
			server.ErrorByPath = map[string]error{
				"/apis/cats.org/v1": errors.New("extension server is down"),
				"/apis/cats.org/v2": errors.New("extension server is down"),
			}
			found, err := discovery.NewInquiry(server, nil).Resolve(t.Context(), tc.selector, known(tc.before...))
			if d := cmp.Diff(tc.want, resourceTexts(found.Served)); d != "" || found.Incomplete != tc.incomplete {
				t.Errorf("%s: incomplete %v, error %v; -want, +got:\n%s", tc.reason, found.Incomplete, err, d)
			}
			unserved, fails := tc.unserved != "", tc.unserved+tc.fails != ""
			if discovery.IsUnserved(err) != unserved || (err != nil) != fails ||
				err != nil && !strings.Contains(err.Error(), tc.unserved+tc.fails) {
				t.Errorf("%s: got the error %v", tc.reason, err)
			}
		})
	}
}

func TestPreferredVersionsComeFirst(t *testing.T) {
	server := discoverytest.NewZoo()
	groups, _ := server.ByPath["/apis"].(metav1.APIGroupList)
	groups.Groups[0].PreferredVersion = groups.Groups[0].Versions[1]
	lions := func(r discovery.Resource) bool { return r.Plural == "lions" }
	s := discovery.Selector{Func: &lions}
	found, err := discovery.NewInquiry(server, nil).Resolve(t.Context(), s, nil)
	if d := cmp.Diff([]string{"cats.org/v1/lions", "cats.org/v2/lions"}, resourceTexts(found.Served)); d != "" ||
		err != nil {
		t.Errorf("want the preferred version first: error %v, -want, +got:\n%s", err, d)
	}
}

// TestWritersNeedPatches shows that a writer needs a resource with the verb patch, and does not affect the readers of
// other resources.
func TestWritersNeedPatches(t *testing.T) {
	s := mustParseSpelling(t, "statistics")
	for writes, want := range map[bool]string{true: "cannot be patched", false: ""} {
		inquiry := discovery.NewInquiry(discoverytest.NewZoo(), map[discovery.Selector]bool{s: writes})
		_, err := inquiry.Resolve(t.Context(), s, nil)
		if (err != nil) != writes || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("writes %v: got %v, want an error with %q", writes, err, want)
		}
	}
	all, err := discovery.ListResources(t.Context(), discoverytest.NewZoo())
	if err != nil {
		t.Fatal(err)
	}
	plan := discovery.PlanServed([]discovery.SelectorUse{
		{Selector: s, Use: discovery.Watching}, {Selector: mustParseSpelling(t, "pods"), Use: discovery.Patching},
	}, all)
	if d := cmp.Diff([]string{"dogs.org/v1/statistics", "/v1/pods"}, resourceTexts(plan.Watched)); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}

func TestInterchangeable(t *testing.T) {
	one := discovery.Resource{
		GroupVersionKind: discoverytest.ExampleV1.WithKind("Widget"), Plural: "widgets", Namespaced: true,
		Subresources: []string{"status"},
	}
	for reason, tc := range map[string]struct {
		change func(r *discovery.Resource)
		want   bool
	}{
		"other short names make no difference": {func(r *discovery.Resource) { r.Shortcuts = []string{"wd"} }, true},
		"other subresources than the status make no difference": {
			func(r *discovery.Resource) { r.Subresources = []string{"scale", "status"} }, true,
		},
		"another version makes a difference":      {func(r *discovery.Resource) { r.Version = "v2" }, false},
		"another kind makes a difference":         {func(r *discovery.Resource) { r.Kind = "Gadget" }, false},
		"another name in URLs makes a difference": {func(r *discovery.Resource) { r.Plural = "widgetses" }, false},
		"the namespaces make a difference":        {func(r *discovery.Resource) { r.Namespaced = false }, false},
		"the status makes a difference":           {func(r *discovery.Resource) { r.Subresources = nil }, false},
	} {
		other := one
		tc.change(&other)
		if one.IsInterchangeable(other) != tc.want || other.IsInterchangeable(one) != tc.want {
			t.Errorf("%s: want interchangeable: %v", reason, tc.want)
		}
	}
}

func TestContradicts(t *testing.T) {
	v1, v2 := mustParseSpelling(t, "a.org/v1", "widgets"), mustParseSpelling(t, "a.org/v2", "widgets")
	any1, all1 := mustParseSpelling(t, "widgets.a.org"), mustParseSpelling(t, "a.org/v1", "*")
	for reason, tc := range map[string]struct {
		a, b discovery.Selector
		want bool
	}{
		"two versions of one kind contradict":                {v1, v2, true},
		"one version does not contradict itself":             {v1, v1, false},
		"the preferred version contradicts no version":       {v2, any1, false},
		"a selector of several kinds contradicts no version": {v2, all1, false},
	} {
		if tc.a.ContradictsVersion(tc.b) != tc.want || tc.b.ContradictsVersion(tc.a) != tc.want {
			t.Errorf("%s: %s and %s: want %v", reason, tc.a, tc.b, tc.want)
		}
	}
}

func TestSchemaOf(t *testing.T) {
	const openAPI = `{"components":{"schemas":{
		"org.a.v1.Widget":{"type":"object","x-kubernetes-group-version-kind":[
			{"group":"a.org","version":"v2","kind":"Widget"},{"group":"a.org","version":"v1","kind":"Widget"}]},
		"org.a.v1.Gadget":{"type":"odd","x-kubernetes-group-version-kind":[
			{"group":"a.org","version":"v1","kind":"Gadget"}]},
		"org.b.v1.Widget":{"type":"odd","x-kubernetes-group-version-kind":[
			{"group":"b.org","version":"v1","kind":"Widget"}]},
		"org.a.v3.Widget":{"type":"odd","x-kubernetes-group-version-kind":[
			{"group":"a.org","version":"v3","kind":"Widget"}]},
		"Plain":{"type":"string"},"Odd":true}}}`
	server := documents{
		"/openapi/v3/apis/a.org/v1": openAPI, "/openapi/v3/api/v1": strings.ReplaceAll(openAPI, "a.org", ""),
		"/openapi/v3/apis/broken.org/v1": "{",
	}
	widget := func(group string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Widget"}
	}
	for n := range 40 { // schemas are found in random order
		group := []string{"a.org", ""}[n%2]
		object, resolve, err := discovery.SchemaOf(t.Context(), server, widget(group))
		if err != nil || object["type"] != "object" {
			t.Errorf("group %q: got %v with error %v", group, object, err)
			continue
		}
		if found := resolve("#/components/schemas/Plain"); found["type"] != "string" || resolve("#/nowhere") != nil {
			t.Errorf("want the schema of the reference, got %v", found)
		}
	}
	if object, _, err := discovery.SchemaOf(t.Context(), server, widget("none.org")); object != nil || err != nil {
		t.Errorf("want no schema without a document, got %v with error %v", object, err)
	}
	if _, _, err := discovery.SchemaOf(t.Context(), server, widget("broken.org")); err == nil ||
		!strings.Contains(err.Error(), "broken.org/v1") {
		t.Errorf("want an error that names the kind, got %v", err)
	}
}

func TestListKeysOf(t *testing.T) {
	const openAPI = `{"components":{"schemas":{
		"Widget":{"type":"object","x-kubernetes-group-version-kind":[{"group":"a.org","version":"v1","kind":"Widget"}],
			"properties":{"metadata":{"allOf":[{"$ref":"#/components/schemas/Meta"}]},"other":{"type":"string"},
			"spec":{"type":"object","properties":{
				"routes":{"type":"array","x-kubernetes-list-map-keys":["host","path"],"items":{"properties":{
					"rules":{"type":"array","x-kubernetes-list-map-keys":["id"]}}}},
				"groups":{"additionalProperties":{"type":"array","x-kubernetes-list-map-keys":["name"]}},
				"self":{"$ref":"#/components/schemas/Widget"},"odd":[],"odds":{"x-kubernetes-list-map-keys":7}}}}},
		"Meta":{"properties":{"owners":{"x-kubernetes-list-map-keys":["uid"]}}}}}}`
	server := documents{"/openapi/v3/apis/a.org/v1": openAPI, "/openapi/v3/apis/broken.org/v1": "{"}
	kind := schema.GroupVersionKind{Group: "a.org", Version: "v1", Kind: "Widget"}
	keys, err := discovery.ListKeysOf(t.Context(), server, kind)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]string{
		"spec.routes": {"host", "path"}, "spec.routes.rules": {"id"}, "spec.groups.any": {"name"},
		"metadata.owners": {"uid"}, "spec.self.spec.routes.rules": {"id"},
		"spec": nil, "spec.odds": nil, "spec.routes.other": nil, "spec.routes.rules.deep.er": nil, "other": nil,
	} {
		if got := keys(strings.Split(path, ".")); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	kind.Group = "none.org"
	if keys, err := discovery.ListKeysOf(t.Context(), server, kind); err != nil || keys([]string{"spec"}) != nil {
		t.Errorf("want no keys without a schema, got %v with error %v", keys != nil, err)
	}
	kind.Group = "broken.org"
	if _, err := discovery.ListKeysOf(t.Context(), server, kind); err == nil {
		t.Error("want an error for a schema that cannot be read")
	}
}

// TestAPI shows that a missing document is an empty answer, and that other failures are errors.
func TestAPI(t *testing.T) {
	client := restClient(t, func(r *http.Request) (int, string) {
		return map[string]int{"/there": http.StatusOK, "/broken": http.StatusInternalServerError}[r.URL.Path], "{}"
	})
	api := discovery.API{Client: client}
	for path, want := range map[string]string{"/there": "{}", "/gone": ""} {
		if data, err := api.Get(t.Context(), path); string(data) != want || err != nil {
			t.Errorf("%s: got %q with error %v", path, data, err)
		}
	}
	if data, err := api.Get(t.Context(), "/broken"); err == nil {
		t.Errorf("got %q, want an error", data)
	}
}
