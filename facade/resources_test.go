package kopf_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
)

func TestManyResources(t *testing.T) {
	ok := func(context.Context, *Raw) error { return nil }
	all := func(kopf.Resource) bool { return true }
	tests := map[string]struct {
		reason   string
		register func(op *kopf.Operator)
		fails    string
	}{
		"UnknownKeyword": {
			"a keyword that is not understood would select too much",
			func(op *kopf.Operator) { kopf.ForResource(op, "categories=all") }, `unknown keyword "categories"`,
		},
		"TwoNames": {
			"nobody knows which is meant", func(op *kopf.Operator) { kopf.ForResource(op, "pods", "category=all") },
			"exactly one name",
		},
		"NoName": {
			"a group alone is no resource", func(op *kopf.Operator) { kopf.ForResource(op, "group=kopf.dev") },
			"exactly one name",
		},
		"EmptyName": {
			"it is no name", func(op *kopf.Operator) { kopf.ForResource(op, "kind=") }, "exactly one name",
		},
		"BadName": {
			"nothing is called so", func(op *kopf.Operator) { kopf.ForResource(op, "plural=a/b") },
			`invalid resource name "a/b"`,
		},
		"EverythingOfNothing": {
			"everything is a name, no group",
			func(op *kopf.Operator) { kopf.ForResource(op, "*", "pods") }, "not a group or version",
		},
		"NoFunction": {
			"it cannot be asked", func(op *kopf.Operator) { kopf.ForResourceFunc(op, nil) }, "the function is nil",
		},
		"NoOperator": {
			"the handlers would be nobody's", func(*kopf.Operator) { kopf.ForResourceFunc(nil, all) },
			"ForResourceFunc: the operator is nil",
		},
		"IDInEverything": {"everything means pods, too", func(op *kopf.Operator) {
			kopf.ForResource(op, "pods").OnCreate("a", ok)
			kopf.ForResource(op, "*").OnCreate("a", func(context.Context, *Raw) error { return nil })
		}, "the id is taken by OnCreate"},
		"IDTwiceInOne": {"it is the same selection", func(op *kopf.Operator) {
			chosen := kopf.ForResourceFunc(op, all)
			chosen.OnCreate("a", ok)
			chosen.OnCreate("a", func(context.Context, *Raw) error { return nil })
		}, "the id is taken by OnCreate"},
		"IDInOtherGroups": {"these cannot meet", func(op *kopf.Operator) {
			kopf.ForResource(op, "kopf.dev", "*").OnCreate("a", ok)
			kopf.ForResource(op, "v1", "pods").OnCreate("a", ok)
		}, ""},
		"IDsThatMayMeet": {"what two functions or categories have in common is not known before they are asked",
			func(op *kopf.Operator) {
				kopf.ForResourceFunc(op, all).OnCreate("a", ok)
				kopf.ForResource(op, "category=all").OnCreate("a", ok)
				kopf.ForResource(op, "category=other").OnCreate("a", ok)
				kopf.ForResource(op, "pods").OnCreate("a", ok)
			}, ""},
		"OtherVersions": {"everything of a version may be other things than those of another one",
			func(op *kopf.Operator) {
				kopf.ForResource(op, "kopf.dev/v1", "*").OnCreate("a", ok)
				kopf.ForResource(op, "kopf.dev/v2", "kopfexamples").OnCreate("b", ok)
			}, ""},
		"Keywords": {"all of them", func(op *kopf.Operator) {
			for _, parts := range [][]string{
				{"kind=Pod"}, {"plural=pods"}, {"singular=pod"}, {"shortcut=po"}, {"category=all", "group="},
				{"version=v1", "group=kopf.dev", "kind=KopfExample"}, {"*", "version=v1"},
			} {
				kopf.ForResource(op, parts...).OnCreate(
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
			_, _ = kopf.Plan(kopf.New("strays.example.org"), newScheme(t)) // takes away what other tests left
			op := kopf.New("test.example.org")
			tc.register(op)
			plan, err := kopf.Plan(op, newScheme(t))
			if tc.fails == "" && (err != nil || len(plan) == 0) || tc.fails != "" && (err == nil || !strings.Contains(
				err.Error(), tc.fails,
			)) {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.fails, err)
			}
		})
	}
}

func TestAFunctionThatPanicsSelectsNothing(t *testing.T) {
	op := kopf.New("test.example.org")
	kopf.ForResourceFunc(
		op, func(r kopf.Resource) bool { return r.Categories[0] == "all" },
	).OnCreate("a", func(context.Context, *Raw) error { return nil })
	plan, err := kopf.Plan(op, newScheme(t))
	if err != nil {
		t.Fatal(err)
	}
	podsBefore, nodesBefore := countLogged(`"resource"="/v1/pods"`), countLogged(`"resource"="/v1/nodes"`)
	meant := *plan[0].Selector.Func
	pod := discovery.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Plural: "pods"}
	if meant(pod) {
		t.Error("a resource without categories was selected by a function that panics over it")
	}
	node := discovery.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Node"}, Plural: "nodes"}
	_, _ = meant(pod), meant(node)
	pods, nodes := countLogged(`"resource"="/v1/pods"`)-podsBefore, countLogged(`"resource"="/v1/nodes"`)-nodesBefore
	if pods != 1 || nodes != 1 {
		t.Errorf("each resource is told once, got %d and %d lines", pods, nodes)
	}
	if pod.Categories = []string{"all"}; !meant(pod) {
		t.Error("the others are selected as ever")
	}
}
