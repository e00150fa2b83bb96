package kopf_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// TestMatchConditions shows that the managed entries have match conditions, except if the setting turns them off or
// the operator takes over from Kopf. Deviations: D-match-conditions and D-own-writes.
func TestMatchConditions(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	const there = `[object == null ? oldObject : object].all(it, it == null || (type(it) == map && "spec" in it && ` +
		`type(it["spec"]) == map && "size" in it["spec"] && it["spec"]["size"] == 5))`
	const red = `[object == null ? oldObject : object].all(it, it == null || (type(it) == map && "metadata" in it && ` +
		`type(it["metadata"]) == map && "annotations" in it["metadata"] && type(it["metadata"]["annotations"]) == ` +
		`map && "team" in it["metadata"]["annotations"] && it["metadata"]["annotations"]["team"] == "red"))`
	kopfs := kopf.AsKopf()
	for name, tc := range map[string]struct {
		reason   string
		settings kopf.Settings
		want     map[string]string
	}{
		"Default": {
			"the API server sends only requests that the handler's filters can match",
			kopf.Settings{}, map[string]string{
				"annotation-1": red, "field-2": there, "not-own-write": "",
			}},
		"Without": {"WithoutMatchConditions removes the match conditions", kopf.Settings{
			Admission: kopf.AdmissionSettings{WithoutMatchConditions: true},
		}, nil},
		"AsKopf": {"entries have no match conditions with AsKopf, as in Kopf", kopfs, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			tc.settings.Admission.Managed, tc.settings.Admission.Service = "shared.example.org", "team-a/webhook"
			op, api := kopf.New("test.example.org", tc.settings), newAdmissionAPI()
			kopf.For(op, &Widget{}).WithAnnotation("team", "red").Validate("v", registerAdmission,
				kopf.InField("spec.size"), kopf.Value(5))
			p := startProgram(t, api, op)
			time.Sleep(5 * time.Second)
			var got map[string]string
			for _, entry := range p.entries(t, validatingResource) {
				for _, one := range entry.MatchConditions {
					if got == nil {
						got = map[string]string{}
					}
					if got[one.Name] = one.Expression; one.Name == "not-own-write" {
						got[one.Name] = "" // package agreement tests the expression
					}
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" || len(p.names(t, validatingResource)) != 1 {
				t.Errorf("%s: %s: -want, +got:\n%s", name, tc.reason, d)
			}
			if err := p.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}
