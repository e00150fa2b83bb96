package planning_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/planning"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
)

const dump = `apiVersion: v1
kind: List
items:
- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata: {name: widgets.example.org}
  spec:
    group: example.org
    scope: Namespaced
    names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd]}
    versions:
    - {name: v1alpha1, served: true, storage: false}
    - {name: v1, served: true, storage: true, subresources: {status: {}}}
- apiVersion: example.org/v1alpha1
  kind: Widget
  metadata: {name: a, namespace: default, uid: "1", managedFields: []}
  spec: {size: 3}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: web, uid: "2"}
`

func TestDumpsServeTheirKinds(t *testing.T) {
	d, err := planning.ParseDump([]byte(dump))
	if err != nil {
		t.Fatal(err)
	}
	all, err := discovery.ListResources(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]discovery.Resource{}
	for _, r := range all {
		found[r.String()] = r
	}
	if r := found["example.org/v1/widgets"]; !r.Namespaced || !r.Preferred || !r.HasStatus() || len(r.Shortcuts) != 1 {
		t.Errorf("a definition must name its kind, and the stable version is the preferred one: %+v", r)
	}
	if r, ok := found["networking.k8s.io/v1/ingressclasses"]; !ok || r.Namespaced {
		t.Errorf("a kind without a definition must have the usual plural and the scope of its objects: %+v", all)
	}
	var sizes []any
	err = d.ListObjects(t.Context(), found["example.org/v1/widgets"], "default", "", func(body map[string]any) error {
		sizes = append(sizes, body["apiVersion"], body["spec"].(map[string]any)["size"])
		return nil
	})
	if err != nil || len(sizes) != 2 || sizes[0] != "example.org/v1" || sizes[1] != int64(3) {
		t.Errorf("objects must have the version of the resource, and integers as in a cluster: %v, %v", sizes, err)
	}
}

func TestDumpsThatCannotBeUsed(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"an object without a uid": {
			"apiVersion: v1\nkind: Pod\nmetadata: {name: a}", "Pod a: it has no uid",
		},
		"a document that is a text":   {"hello", "not an object"},
		"a document without a kind":   {"metadata: {name: a}", "not an object"},
		"an object without a name":    {"apiVersion: v1\nkind: Pod\nmetadata: 3", "no name"},
		"a list in a list of nothing": {"apiVersion: v1\nkind: List\nitems: [null]", "not an object"},
		"a file that is not YAML":     {"a: [", "yaml"},
		"a definition of a wrong type": {
			"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\nspec: 3",
			"definition",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := planning.ParseDump([]byte(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error must name the problem %q: %v", tc.want, err)
			}
		})
	}
}

func TestTextOfReports(t *testing.T) {
	object := func(name, state string) planning.PlannedObject {
		return planning.PlannedObject{
			Kind: "widgets.example.org", Namespace: "default", Name: name, Reason: "update",
			Why:      "changed: spec.\x1b[31m",
			Handlers: []planning.PlannedHandler{{Handler: "grow", On: "update", State: state, Attempts: 2}},
		}
	}
	background := planning.PlannedObject{
		Kind: "widgets.example.org", Name: "d", Starting: []string{"tick", "serve"}, Notified: []string{"watch"},
	}
	summary := func(handler, on string) planning.HandlerSummary {
		return planning.HandlerSummary{Kind: "widgets.example.org", Handler: handler, On: on, Starts: 1}
	}
	r := &planning.ChangePlan{
		Warnings: []string{"beware"},
		Handlers: []planning.HandlerSummary{
			{Kind: "widgets.example.org", Handler: "grow", On: "update", Updates: 2},
			summary("tick", "timer"), summary("serve", "daemon"), summary("watch", "event"),
			// Handlers of different families can have the same id.
			{Kind: "widgets.example.org", Handler: "tick", On: "create"},
			{Kind: "widgets.example.org", Handler: "serve", On: "event"},
			{Kind: "widgets.example.org", Handler: "watch", On: "timer"},
		},
		Objects: []planning.PlannedObject{
			object("a", "retried"), object("b", "finished"), object("c", "retried"), background,
		},
		Untouched: 7,
	}
	var text bytes.Buffer
	if err := r.WriteText(&text, 1); err != nil {
		t.Fatal(err)
	}
	const want = `WARNING: beware.

KIND                 HANDLER  ON      CREATE  UPDATE  DELETE  RESUME  WAITING  START
widgets.example.org  grow     update  0       2       0       0       0        0
widgets.example.org  tick     timer   0       0       0       0       0        1
widgets.example.org  serve    daemon  0       0       0       0       0        1
widgets.example.org  watch    event   0       0       0       0       0        1
widgets.example.org  tick     create  0       0       0       0       0        0
widgets.example.org  serve    event   0       0       0       0       0        0
widgets.example.org  watch    timer   0       0       0       0       0        0

4 objects need a handler or attention, 7 do not.

HANDLER widgets.example.org grow (update)
  default/a: retried for update; changed: spec.�[31m; 2 attempts before
  and 1 more, see --all

HANDLER widgets.example.org tick (timer)
  d: starts

HANDLER widgets.example.org serve (daemon)
  d: starts

HANDLER widgets.example.org watch (event)
  d: gets the object
`
	if text.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", &text, want)
	}
}
