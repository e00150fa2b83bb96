package facade_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/facade"
)

func TestManyResources(t *testing.T) {
	ok := func(context.Context, *Raw) error { return nil }
	all := func(facade.Resource) bool { return true }
	tests := map[string]struct {
		reason   string
		register func(op *facade.Operator)
		fails    string
	}{
		"UnknownKeyword": {
			"a keyword that is not understood would select too much",
			func(op *facade.Operator) { facade.ForResource(op, "categories=all") }, `unknown keyword "categories"`,
		},
		"TwoNames": {
			"nobody knows which is meant", func(op *facade.Operator) { facade.ForResource(op, "pods", "category=all") },
			"exactly one name",
		},
		"NoName": {
			"a group alone is no resource", func(op *facade.Operator) { facade.ForResource(op, "group=kopf.dev") },
			"exactly one name",
		},
		"EmptyName": {
			"it is no name", func(op *facade.Operator) { facade.ForResource(op, "kind=") }, "exactly one name",
		},
		"BadName": {
			"nothing is called so", func(op *facade.Operator) { facade.ForResource(op, "plural=a/b") },
			`invalid resource name "a/b"`,
		},
		"EverythingOfNothing": {
			"everything is a name, no group",
			func(op *facade.Operator) { facade.ForResource(op, facade.Everything, "pods") }, "no group or version",
		},
		"NoFunction": {
			"it cannot be asked", func(op *facade.Operator) { facade.ForResourceFunc(op, nil) }, "the function is nil",
		},
		"NoOperator": {
			"the handlers would be nobody's", func(*facade.Operator) { facade.ForResourceFunc(nil, all) },
			"ForResourceFunc: the operator is nil",
		},
		"IDInEverything": {"everything means pods, too", func(op *facade.Operator) {
			facade.ForResource(op, "pods").OnCreate("a", ok)
			facade.ForResource(op, facade.Everything).OnCreate("a", ok)
		}, "the id is taken by OnCreate"},
		"IDTwiceInOne": {"it is the same selection", func(op *facade.Operator) {
			chosen := facade.ForResourceFunc(op, all)
			chosen.OnCreate("a", ok)
			chosen.OnCreate("a", ok)
		}, "the id is taken by OnCreate"},
		"IDInOtherGroups": {"these cannot meet", func(op *facade.Operator) {
			facade.ForResource(op, "kopf.dev", facade.Everything).OnCreate("a", ok)
			facade.ForResource(op, "v1", "pods").OnCreate("a", ok)
		}, ""},
		"IDsThatMayMeet": {"what two functions or categories have in common is not known before they are asked",
			func(op *facade.Operator) {
				facade.ForResourceFunc(op, all).OnCreate("a", ok)
				facade.ForResource(op, "category=all").OnCreate("a", ok)
				facade.ForResource(op, "category=other").OnCreate("a", ok)
				facade.ForResource(op, "pods").OnCreate("a", ok)
			}, ""},
		"OtherVersions": {"everything of a version may be other things than those of another one",
			func(op *facade.Operator) {
				facade.ForResource(op, "kopf.dev/v1", facade.Everything).OnCreate("a", ok)
				facade.ForResource(op, "kopf.dev/v2", "kopfexamples").OnCreate("b", ok)
			}, ""},
		"Keywords": {"all of them", func(op *facade.Operator) {
			for _, parts := range [][]string{
				{"kind=Pod"}, {"plural=pods"}, {"singular=pod"}, {"shortcut=po"}, {"category=all", "group="},
				{"version=v1", "group=kopf.dev", "kind=KopfExample"}, {"*", "version=v1"},
			} {
				facade.ForResource(op, parts...).OnCreate(
					strings.Trim(
						strings.NewReplacer("=", "-", "*", "all", ".", "-").Replace(strings.Join(parts, "-")), "-",
					),
					ok,
				)
			}
		}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, _ = facade.Plan(facade.New("strays.example.org"), newScheme(t)) // takes away what other tests left
			op := facade.New("test.example.org")
			tc.register(op)
			plan, err := facade.Plan(op, newScheme(t))
			if tc.fails == "" && (err != nil || len(plan) == 0) || tc.fails != "" && (err == nil || !strings.Contains(
				err.Error(), tc.fails,
			)) {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.fails, err)
			}
		})
	}
}

func TestAFunctionThatPanicsSelectsNothing(t *testing.T) {
	op := facade.New("test.example.org")
	facade.ForResourceFunc(
		op, func(r facade.Resource) bool { return r.Categories[0] == "all" },
	).OnCreate("a", func(context.Context, *Raw) error { return nil })
	plan, err := facade.Plan(op, newScheme(t))
	if err != nil {
		t.Fatal(err)
	}
	meant := *plan[0].Selector.Func
	pod := facade.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Plural: "pods"}
	if meant(pod) {
		t.Error("a resource without categories was selected by a function that panics over it")
	}
	node := facade.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Node"}, Plural: "nodes"}
	_, _, _ = meant(pod), meant(pod), meant(node)
	pods, nodes := countLogged(`"resource"="/v1/pods"`), countLogged(`"resource"="/v1/nodes"`)
	if pods != 1 || nodes != 1 {
		t.Errorf("each resource is told once, got %d and %d lines", pods, nodes)
	}
	if pod.Categories = []string{"all"}; !meant(pod) {
		t.Error("the others are selected as ever")
	}
}
