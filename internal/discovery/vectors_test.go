package discovery_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// resourceOf reads a resource of a vector.
func resourceOf(t *testing.T, item any) discovery.Resource {
	t.Helper()
	d := vectors.Known(t, item, "group", "version", "plural", "kind", "singular", "shortcuts", "categories",
		"subresources",
		"namespaced", "preferred", "verbs")
	return discovery.Resource{
		GroupVersionKind: schema.GroupVersionKind{
			Group: d.Text("group", ""), Version: d.Text("version", ""), Kind: d.Text("kind", ""),
		},
		Plural: d.Text("plural", ""), Singular: d.Text("singular", ""), Shortcuts: stringsOf(d.List("shortcuts")),
		Categories: stringsOf(d.List("categories")), Subresources: stringsOf(d.List("subresources")),
		Namespaced: d.Flag("namespaced"), Preferred: d.Flag("preferred"), Verbs: stringsOf(d.List("verbs")),
	}
}

func stringsOf(list []any) []string {
	all := []string{}
	for _, item := range list {
		text, _ := item.(string)
		all = append(all, text)
	}
	return all
}

func resourcesOf(t *testing.T, list []any) []discovery.Resource {
	t.Helper()
	var all []discovery.Resource
	for _, item := range list {
		all = append(all, resourceOf(t, item))
	}
	return all
}

// selectorOf reads a selector: positional arguments, or named ones, with the positional ones among them.
func selectorOf(t *testing.T, spec any) (discovery.Selector, error) {
	t.Helper()
	args, positional := spec.([]any)
	var named discovery.Selector
	if special, isSpecial := spec.(map[string]any); isSpecial && special["$"] != nil || spec == nil {
		args, positional = []any{spec}, true
	}
	if !positional {
		d := vectors.Known(t, spec, "args", "group", "version", "kind", "plural", "singular", "shortcut", "category")
		args = d.List("args")
		for _, key := range []string{"group", "version", "kind", "plural", "singular", "shortcut", "category"} {
			text, said := d[key].(string)
			if !said {
				continue
			}
			if err := named.SetKeyword(key, text); err != nil {
				return named, err
			}
		}
	}
	read := []any{}
	for _, arg := range args {
		read = append(read, selectorArgument(t, arg))
	}
	return discovery.ParseSelector(read, named)
}

func selectorArgument(t *testing.T, arg any) any {
	t.Helper()
	if _, isMapping := arg.(map[string]any); !isMapping {
		return arg
	}
	d := vectors.Known(t, arg, "$", "fn", "arg")
	if d["$"] == "EVERYTHING" {
		return discovery.Everything
	}
	fn, ok := map[string]func(discovery.Resource) bool{
		"group_is":   func(r discovery.Resource) bool { return r.Group == d["arg"] },
		"plural_in":  func(r discovery.Resource) bool { return slices.Contains(d.List("arg"), any(r.Plural)) },
		"everything": func(discovery.Resource) bool { return true },
		"nothing":    func(discovery.Resource) bool { return false },
		"namespaced": func(r discovery.Resource) bool { return r.Namespaced },
	}[d.Text("fn", "")]
	if !ok {
		t.Fatalf("unknown function %v in the vectors", arg)
	}
	return fn
}

// selectorFields returns the given parts of the selector in the form of the vectors.
func selectorFields(s discovery.Selector) map[string]any {
	shown := map[string]any{}
	if s.Group.IsSet {
		shown["group"] = s.Group.Text
	}
	if s.Version.IsSet {
		shown["version"] = s.Version.Text
	}
	for key, value := range map[string]string{
		"any_name": s.Name, "kind": s.Kind, "plural": s.Plural, "singular": s.Singular, "shortcut": s.Shortcut,
		"category": s.Category,
	} {
		if value != "" {
			shown[key] = value
		}
	}
	if s.Everything {
		shown["any_name"] = "EVERYTHING"
	}
	return shown
}

func resourceNames(list []discovery.Resource) []any {
	all := []any{}
	for _, r := range list {
		all = append(all, r.String())
	}
	slices.SortFunc(all, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return all
}

func compareResult(t *testing.T, want vectors.Expected, got any, err error) {
	t.Helper()
	if want.Failed(t, got, err) {
		return
	}
	if !diff.Equal(want.Value, got) {
		t.Errorf("-want, +got:\n%s", cmp.Diff(want.Value, got))
	}
}

func TestVectorsResourceSelector(t *testing.T) {
	vectors.Run(t, "resource_selector", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Known(t, input, "selector", "resources")
		all := resourcesOf(t, input.List("resources"))
		s, err := selectorOf(t, input["selector"])
		var checked []discovery.Resource
		for _, r := range all {
			if err == nil && s.Matches(r) {
				checked = append(checked, r)
			}
		}
		compareResult(t, want, map[string]any{
			"parsed": selectorFields(s), "is_specific": s.IsSpecific(), "checked": resourceNames(checked),
			"selected": resourceNames(
				s.SelectFrom(all),
			),
		}, err)
	})
}

var useByDecorator = map[string]discovery.Use{
	"create": discovery.Patching, "update": discovery.Patching, "delete": discovery.Patching,
	"resume": discovery.Patching,
	"field":  discovery.Patching, "timer": discovery.Patching, "daemon": discovery.Patching,
	"event": discovery.Watching,
	"index": discovery.Indexing, "validate": discovery.Reviewing, "mutate": discovery.Reviewing,
}

func TestVectorsServedResources(t *testing.T) {
	vectors.Run(t, "served_resources", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Known(t, input, "handlers", "scans", "resources")
		var wants []discovery.SelectorUse
		for _, item := range input.List("handlers") {
			d, _ := item.(map[string]any)
			use, ok := useByDecorator[vectors.Fields(d).Text("on", "")]
			if !ok {
				t.Fatalf("unknown handler %v in the vectors", item)
			}
			s, err := selectorOf(t, d["resource"])
			if err != nil {
				t.Fatal(err)
			}
			wants = append(wants, discovery.SelectorUse{Selector: s, Use: use})
		}
		var all []discovery.Resource
		got := []any{}
		for _, item := range input.List("scans") {
			scan := vectors.Known(t, item, "group", "resources")
			list := input.List("resources")
			if scan["resources"] != nil {
				list = scan.List("resources")
			}
			found := resourcesOf(t, list)
			if group, ok := scan["group"].(string); ok {
				all = slices.DeleteFunc(slices.Clone(all), func(r discovery.Resource) bool { return r.Group == group })
				all = append(all, found...)
			} else {
				all = found
			}
			plan := discovery.PlanServed(wants, all)
			got = append(
				got,
				map[string]any{
					"watched": resourceNames(plan.Watched), "indexed": resourceNames(plan.Indexed),
					"webhook": resourceNames(plan.Reviewed),
				},
			)
		}
		compareResult(t, want, got, nil)
	})
}
