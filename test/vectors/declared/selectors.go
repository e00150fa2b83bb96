package declared

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// Resource is the resource that a case serves, given what the case says of it: kopfexamples, unless it says otherwise.
func Resource(t testing.TB, overrides any) discovery.Resource {
	t.Helper()
	r := discovery.Resource{
		GroupVersionKind: schema.GroupVersionKind{
			Group: "kopf.dev", Version: "v1", Kind: "KopfExample",
		}, Plural: "kopfexamples",
		Singular: "kopfexample", Shortcuts: []string{"kex"}, Categories: []string{"all"}, Namespaced: true,
		Preferred: true,
		Verbs:     []string{"list", "watch", "patch", "create", "update", "delete", "get"},
	}
	if overrides == nil {
		return r
	}
	d := vectors.Known(t, overrides, "group", "version", "kind", "plural", "singular", "shortcuts", "categories",
		"subresources",
		"namespaced", "preferred", "verbs")
	for key, text := range map[string]*string{
		"group": &r.Group, "version": &r.Version, "kind": &r.Kind, "plural": &r.Plural, "singular": &r.Singular,
	} {
		*text = d.Text(key, *text)
	}
	for key, list := range map[string]*[]string{
		"shortcuts": &r.Shortcuts, "categories": &r.Categories, "subresources": &r.Subresources, "verbs": &r.Verbs,
	} {
		if d[key] != nil {
			*list = texts(d.List(key))
		}
	}
	for key, flag := range map[string]*bool{"namespaced": &r.Namespaced, "preferred": &r.Preferred} {
		if d[key] != nil {
			*flag = d.Flag(key)
		}
	}
	return r
}

func texts(list []any) []string {
	all := make([]string, 0, len(list))
	for _, item := range list {
		all = append(all, fmt.Sprint(item))
	}
	return all
}

// selects reports whether the arguments of a decorator, positional or named, select the resource.
func selects(t testing.TB, spec any, resource discovery.Resource) (bool, error) {
	t.Helper()
	args := []any{spec}
	var named discovery.Selector
	switch spec := spec.(type) {
	case nil:
		args = []any{"kopf.dev", "v1", "kopfexamples"}
	case []any:
		args = spec
	case map[string]any:
		if spec["$"] == nil {
			d := vectors.Known(
				t, spec, "args", "group", "version", "kind", "plural", "singular", "shortcut", "category",
			)
			args = d.List("args")
			for key, value := range d {
				text, isText := value.(string)
				if !isText {
					continue
				}
				if err := named.SetKeyword(key, text); err != nil {
					return false, err
				}
			}
		}
	}
	read := make([]any, 0, len(args))
	for _, arg := range args {
		value, err := argument(t, arg)
		if err != nil {
			return false, err
		}
		read = append(read, value)
	}
	s, err := discovery.ParseSelector(read, named)
	return err == nil && s.Matches(resource), err
}

// argument is a positional one: a null, a text, the marker of everything, or a function.
func argument(t testing.TB, arg any) (any, error) {
	t.Helper()
	special, isSpecial := arg.(map[string]any)
	if !isSpecial {
		return arg, nil
	}
	d := vectors.Known(t, special, "$", "fn", "arg")
	if d["$"] == "EVERYTHING" {
		return discovery.Everything, nil
	}
	fn, ok := map[string]func(discovery.Resource) bool{
		"group_is":   func(r discovery.Resource) bool { return r.Group == d["arg"] },
		"plural_in":  func(r discovery.Resource) bool { return slices.Contains(d.List("arg"), any(r.Plural)) },
		"everything": func(discovery.Resource) bool { return true },
		"nothing":    func(discovery.Resource) bool { return false },
		"namespaced": func(r discovery.Resource) bool { return r.Namespaced },
	}[d.Text("fn", "")]
	if !ok {
		return nil, fmt.Errorf("the harness does not know the selector %v", arg)
	}
	return fn, nil
}
