package kopf_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
)

// TestManyResources shows which selections of several resources are accepted, and when they can share an id.
func TestManyResources(t *testing.T) {
	ok := func(context.Context, *Raw) error { return nil }
	all := func(kopf.Resource) bool { return true }
	tests := map[string]struct {
		reason    string
		register  func(op *kopf.Operator)
		wantError string
	}{
		"UnknownKeyword": {
			"an unknown keyword is an error",
			func(op *kopf.Operator) { kopf.ForResource(op, "categories=all") }, `unknown keyword "categories"`,
		},
		"TwoNames": {
			"two names are an error", func(op *kopf.Operator) { kopf.ForResource(op, "pods", "category=all") },
			"exactly one name",
		},
		"NoName": {
			"a group without a name is an error", func(op *kopf.Operator) { kopf.ForResource(op, "group=kopf.dev") },
			"exactly one name",
		},
		"EmptyName": {
			"an empty name is an error", func(op *kopf.Operator) { kopf.ForResource(op, "kind=") }, "exactly one name",
		},
		"BadName": {
			"a name with a slash is an error", func(op *kopf.Operator) { kopf.ForResource(op, "plural=a/b") },
			`invalid resource name "a/b"`,
		},
		"EverythingOfNothing": {
			"the asterisk cannot be a group",
			func(op *kopf.Operator) { kopf.ForResource(op, "*", "pods") }, "not a group or version",
		},
		"NoFunction": {
			"a nil function is an error", func(op *kopf.Operator) { kopf.ForResourceFunc(op, nil) },
			"the function is nil",
		},
		"NoOperator": {
			"a nil operator is an error", func(*kopf.Operator) { kopf.ForResourceFunc(nil, all) },
			"ForResourceFunc: the operator is nil",
		},
		"IDInEverything": {"one id for everything and for a kind is an error", func(op *kopf.Operator) {
			kopf.ForResource(op, "pods").OnCreate("a", ok)
			kopf.ForResource(op, "*").OnCreate("a", func(context.Context, *Raw) error { return nil })
		}, "the id is taken by OnCreate"},
		"IDTwiceInOne": {"one id for two functions of one selection is an error", func(op *kopf.Operator) {
			chosen := kopf.ForResourceFunc(op, all)
			chosen.OnCreate("a", ok)
			chosen.OnCreate("a", func(context.Context, *Raw) error { return nil })
		}, "the id is taken by OnCreate"},
		"IDInOtherGroups": {"one id for different groups is accepted", func(op *kopf.Operator) {
			kopf.ForResource(op, "kopf.dev", "*").OnCreate("a", ok)
			kopf.ForResource(op, "v1", "pods").OnCreate("a", ok)
		}, ""},
		"IDsThatMayMeet": {"one id is accepted for functions and categories, whose kinds are not known yet",
			func(op *kopf.Operator) {
				kopf.ForResourceFunc(op, all).OnCreate("a", ok)
				kopf.ForResource(op, "category=all").OnCreate("a", ok)
				kopf.ForResource(op, "category=other").OnCreate("a", ok)
				kopf.ForResource(op, "pods").OnCreate("a", ok)
			}, ""},
		"OtherVersions": {"everything of one version and a kind of another version are accepted",
			func(op *kopf.Operator) {
				kopf.ForResource(op, "kopf.dev/v1", "*").OnCreate("a", ok)
				kopf.ForResource(op, "kopf.dev/v2", "kopfexamples").OnCreate("b", ok)
			}, ""},
		"Keywords": {"all keywords are accepted", func(op *kopf.Operator) {
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
			_, _ = kopf.Plan(kopf.New("strays.example.org"),
				newScheme(t)) // discards the mistakes that other tests left
			op := kopf.New("test.example.org")
			tc.register(op)
			plan, err := kopf.Plan(op, newScheme(t))
			if tc.wantError == "" && (err != nil || len(plan) == 0) || tc.wantError != "" &&
				(err == nil || !strings.Contains(
					err.Error(), tc.wantError,
				)) {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.wantError, err)
			}
		})
	}
}

// TestAFunctionThatPanicsSelectsNothing shows that a function that panics does not select the resource, and is logged
// once for it.
func TestAFunctionThatPanicsSelectsNothing(t *testing.T) {
	op := kopf.New("test.example.org")
	kopf.ForResourceFunc(
		op, func(r kopf.Resource) bool { return r.Categories[0] == "all" },
	).OnCreate("a", func(context.Context, *Raw) error { return nil })
	plan := planOf(t, op)
	podsBefore, nodesBefore := countLogged(`"resource"="/v1/pods"`), countLogged(`"resource"="/v1/nodes"`)
	meant := *plan[0].Selector.Func
	pod := discovery.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Plural: "pods"}
	if meant(pod) {
		t.Error("a function that panics must not select the resource")
	}
	node := discovery.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Node"}, Plural: "nodes"}
	_, _ = meant(pod), meant(node)
	pods, nodes := countLogged(`"resource"="/v1/pods"`)-podsBefore, countLogged(`"resource"="/v1/nodes"`)-nodesBefore
	if pods != 1 || nodes != 1 {
		t.Errorf("the panic must be logged once for each resource, got %d and %d lines", pods, nodes)
	}
	if pod.Categories = []string{"all"}; !meant(pod) {
		t.Error("a resource without a panic must still be selected")
	}
}
