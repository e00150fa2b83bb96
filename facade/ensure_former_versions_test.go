package kopf_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// shedResource returns a kind that is served in two versions.
func shedResource(version string) memapi.Resource {
	return memapi.Resource{
		Group: "test.example.org", Version: version, Kind: "Shed", Plural: "sheds", Namespaced: true,
	}
}

// putShed creates the child as a field manager in a version of the API, or adds to its data.
func (h ensureFixture) putShed(manager, version string, data map[string]any) {
	h.t.Helper()
	people, err := memapi.NewClient(h.api, shedResource(version))
	if err != nil {
		h.t.Fatal(err)
	}
	shed := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "test.example.org/" + version, "kind": "Shed", "metadata": map[string]any{
			"name": "s", "namespace": "default",
			"labels": map[string]any{"test.example.org/parent-uid": string(h.house().GetUID())},
		}, "data": data,
	}}
	if h.api.Object(shedResource(version), "default", "s") == nil {
		err = people.Create(h.t.Context(), shed, client.FieldOwner(manager))
	} else {
		err = people.Patch(h.t.Context(), shed, client.Merge, client.FieldOwner(manager))
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// TestEnsureTakesOverOneVersionOfFormerManagers shows that fields of former managers are taken over from one API
// version only, as an entry of managedFields belongs to one version. A warning names the former managers whose
// fields are not taken over.
func TestEnsureTakesOverOneVersionOfFormerManagers(t *testing.T) {
	left := func(manager string) string {
		return `"child"="Shed.test.example.org default/s" "managers"=["` + manager + ` (test.example.org/v1beta1)"] ` +
			`"version"="test.example.org/v1"`
	}
	for name, tc := range map[string]struct {
		reason       string
		former       func(h ensureFixture)
		want         map[string]string // the data; the handler declares only "value"
		wantWarnings []string          // the warnings
	}{
		"One": {
			"the fields of a single former version are taken over",
			func(h ensureFixture) { h.putShed("python", "v1beta1", map[string]any{"value": "0", "b": "2"}) },
			map[string]string{"value": "1"}, nil,
		},
		"Two": {
			"of two former versions, the declared one is taken over",
			func(h ensureFixture) {
				h.putShed("python", "v1beta1", map[string]any{"value": "0", "b": "2"})
				h.putShed("python", "v1", map[string]any{"c": "3"})
			},
			map[string]string{"value": "1", "b": "2"}, []string{left("python")},
		},
		"Applied": {
			"after a former apply, fields of another version are reported only",
			func(h ensureFixture) {
				h.runShedOperator(&lines{})
				h.putShed("python", "v1beta1", map[string]any{"b": "2"}) // this manager has not set the label
				h.putShed("go", "v1beta1", map[string]any{"c": "3"})
			},
			map[string]string{"value": "1", "b": "2", "c": "3"},
			[]string{left("go")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			withEnsureFixture(t, func(h ensureFixture) {
				h.api.Install(shedResource("v1beta1"))
				h.api.Install(shedResource("v1"))
				h.createHouse() // no operator runs yet
				tc.former(h)
				log := &lines{}
				h.runShedOperator(log)
				shed := &unstructured.Unstructured{Object: h.api.Object(shedResource("v1"), "default", "s")}
				got, _, _ := unstructured.NestedStringMap(shed.Object, "data")
				if d := cmp.Diff(tc.want, got); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
				var warnings []string
				for _, line := range log.with("remove those that are not declared") {
					_, about, _ := strings.Cut(line, `"attempt"=1 `)
					warnings = append(warnings, strings.TrimSpace(about))
				}
				if d := cmp.Diff(tc.wantWarnings, warnings); d != "" {
					t.Errorf("%s: warnings: -want, +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}

// runShedOperator runs an operator that declares the child once, and adds its log to the lines.
func (h ensureFixture) runShedOperator(log *lines) {
	h.t.Helper()
	op := kopf.New("test.example.org", kopf.Settings{
		Execution: kopf.ExecutionSettings{FormerManagers: []string{"go"}},
	})
	kopf.ForResource(op, "test.example.org/v1", "houses").On("ensure", nonDeleteReasons,
		func(ctx context.Context, c *houseChange) error {
			return c.Ensure(ctx, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "test.example.org/v1", "kind": "Shed", "metadata": map[string]any{"name": "s"},
				"data": map[string]any{"value": "1"},
			}})
		})
	stop := operate(h.t, h.api.Connect(), op, funcr.New(log.add, funcr.Options{}))
	h.settle()
	stop()
}
