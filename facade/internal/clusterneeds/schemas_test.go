package clusterneeds_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterneeds"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

func TestMissingKinds(t *testing.T) {
	cases := map[string]struct {
		reason   string
		spelling []string
		want     string
	}{
		"served": {"a served version is found", []string{"example.org/v1", "widgets"}, ""},
		"any":    {"a name without a version is found", []string{"example.org", "widgets"}, ""},
		"version": {"a version that is not served names those that are", []string{"example.org/v2", "widgets"},
			`failed: kind example.org/v2 widgets [provision]: the version v2 is not served; its handlers wait: set ` +
				`"served: true" for this version in the CRD widgets.example.org, or register the handlers for v1`},
		"unknown version": {"a version that the CRD does not have names those that are served",
			[]string{"example.org/v9", "widgets"}, "the version v9 is not served"},
		"kind": {"a kind that is not installed is reported", []string{"example.org/v1", "gadgets"},
			"failed: kind example.org/v1 gadgets [provision]: the kind is not installed; its handlers wait: " +
				"install its CRD: kubectl apply -f FILE"},
		"group": {"a group that is not installed is reported", []string{"none.org/v1", "gadgets"},
			"the kind is not installed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(problems(t, newCluster(t, widgets), operatorOf(t, tc.spelling...)), "\n")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("%s: want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestFieldsInSchemas shows which fields are reported if the schema does not have them.
func TestFieldsInSchemas(t *testing.T) {
	withoutStatus := strings.Replace(widgets, "    subresources: {status: {}}\n", "", 1)
	keeping := strings.Replace(widgets, "status: {type: object, properties",
		"status: {type: object, x-kubernetes-preserve-unknown-fields: true, properties", 1)
	inStatus := func(o *clusterneeds.CheckInput) {
		o.Essence = []string{"/status/kopf/last-handled-configuration"}
		o.Record = func(id string) []string { return []string{"/status/kopf/progress/" + id + "/started"} }
	}
	reporting := func(o *clusterneeds.CheckInput) {
		o.Handlers = append(o.Handlers, clusterneeds.HandlerNeeds{
			Selector: o.Handlers[0].Selector, Handler: &handlers.Handler{ID: "main.go:1", Family: handlers.Condition},
		})
	}
	const kopf = "to the schema of version v1 in the CRD widgets.example.org, with " +
		"x-kubernetes-preserve-unknown-fields: true"
	cases := map[string]struct {
		reason     string
		definition string
		change     func(o *clusterneeds.CheckInput)
		want       []string
	}{
		"annotations": {"annotations are never dropped", widgets, func(o *clusterneeds.CheckInput) {
			o.Essence = []string{"/metadata/annotations/example.org~1last", "/status/kopf/last"}
			o.Record = func(string) []string { return []string{"/metadata/annotations/example.org~1provision"} }
		}, nil},
		"status storage": {"stored fields that the schema lacks are reported", widgets, inStatus, []string{
			"failed: stored field widgets.example.org/v1 the last-handled configuration [provision]: the API server " +
				"drops status.kopf, so that handlers are called again: add status.kopf " + kopf,
			"failed: stored field widgets.example.org/v1 the record of a handler [provision]: the API server drops " +
				"status.kopf, so that handlers are called again: add status.kopf " + kopf,
		}},
		"kept status storage": {"x-kubernetes-preserve-unknown-fields keeps them", keeping, inStatus, nil},
		"result": {"a result that the schema lacks is unknown, as the handler may not have one", widgets,
			func(o *clusterneeds.CheckInput) {
				o.Handlers = append(o.Handlers, clusterneeds.HandlerNeeds{
					Selector: o.Handlers[0].Selector, Handler: handlerOf("deploy"),
				})
			}, []string{
				"unknown: status widgets.example.org/v1 [deploy]: the API server drops results of these handlers; " +
					"whether they call SetResult is not known: if they do, add status.deploy to version v1 of " +
					"the CRD " +
					"widgets.example.org",
			}},
		"no subresource": {"without Conditions, a status that is not a subresource is unknown", withoutStatus,
			func(*clusterneeds.CheckInput) {}, []string{
				"unknown: status widgets.example.org/v1 [provision]: the status is " +
					"not a subresource: Condition fails, " +
					"and each write of the status is a new generation; whether the handlers write it is not " +
					"known: add " +
					`"subresources: {status: {}}" to version v1 of the CRD widgets.example.org`,
			}},
		"conditions without subresource": {"Conditions need the subresource", withoutStatus, reporting, []string{
			"failed: conditions widgets.example.org/v1 [provision]: the status is " +
				"not a subresource: no conditions are " +
				`written: add "subresources: {status: {}}" to version v1 of the CRD widgets.example.org`,
			"unknown: status widgets.example.org/v1 [provision]: the status is " +
				"not a subresource: Condition fails, and " +
				"each write of the status is a new generation; whether the handlers write it is not " +
				"known: add " +
				`"subresources: {status: {}}" to version v1 of the CRD widgets.example.org`,
		}},
		"conditions": {"Conditions need their list in the schema", widgets, reporting, []string{
			"failed: conditions widgets.example.org/v1 [provision]: the schema has no " +
				"status.conditions: no conditions " +
				"are written: add status.conditions, a list of metav1.Condition, to version v1 of " +
				"the CRD " +
				"widgets.example.org",
		}},
		"kept conditions": {"x-kubernetes-preserve-unknown-fields keeps conditions", keeping, reporting, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := operatorOf(t, "example.org/v1", "widgets")
			tc.change(&o)
			if d := cmp.Diff(tc.want, problems(t, newCluster(t, tc.definition), o)); d != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, d)
			}
		})
	}
}
