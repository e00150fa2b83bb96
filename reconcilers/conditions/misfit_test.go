package conditions_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/conditions"
)

const whole = `{type: {}, status: {}, reason: {}, message: {}, lastTransitionTime: {}, observedGeneration: {}}`

func inStatus(fields string) string { return "properties: {status: {properties: {" + fields + "}}}" }

func TestMisfit(t *testing.T) {
	for name, c := range map[string]struct {
		reason, schema, want string
		observed             bool
	}{
		"as kubebuilder makes it": {
			"it is usual", inStatus(`observedGeneration: {}, conditions: {type: array, items: {
				properties: ` + whole + `, required: [type, status]}}`), "", true,
		},
		"without observedGeneration": {
			"conditions have it themselves", inStatus(`conditions: {type: array, items: {properties: ` + whole + `}}`),
			"", false,
		},
		"a status of anything": {
			"it keeps all", `properties: {status: {x-kubernetes-preserve-unknown-fields: true}}`, "", true,
		},
		"an object of anything": {"so does this", `x-kubernetes-preserve-unknown-fields: true`, "", true},
		"a status with more": {
			"fields beside those", `properties: {status: {additionalProperties: {type: object}}}`, "", true,
		},
		"conditions of anything": {"no items are known", inStatus(`conditions: {}`), "", false},
		"referred to": {
			"as in documents of built-in kinds", `properties: {status: {allOf: [{$ref: S}]}}`, "", false,
		},
		"no status":               {"the CRD has none", `properties: {spec: {}}`, "the schema has no status", false},
		"no conditions":           {"it has other fields", inStatus(`a: {}`), "no status.conditions", false},
		"conditions as a mapping": {"some have that", inStatus(`conditions: {type: object}`), "not a list", false},
		"conditions of former days": {
			"fields are lacking", inStatus(`conditions: {type: array, items: {
				properties: {type: {}, status: {}, reason: {}, message: {}}}}`),
			"lastTransitionTime, observedGeneration", false,
		},
		"more is required": {
			"no write would pass", inStatus(`conditions: {type: array, items: {
				properties: ` + whole + `, required: [type, severity]}}`),
			"need further fields by the schema: [severity]", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var schema map[string]any
			if err := yaml.Unmarshal([]byte(strings.ReplaceAll(c.schema, "\t", "")), &schema); err != nil {
				t.Fatal(err)
			}
			resolve := func(string) map[string]any {
				return map[string]any{"properties": map[string]any{"conditions": map[string]any{"type": "array"}}}
			}
			why, observed := conditions.Misfit(schema, resolve)
			if (why == "") != (c.want == "") || !strings.Contains(why, c.want) || observed != c.observed {
				t.Errorf("%s: %q, observedGeneration: %t", c.reason, why, observed)
			}
		})
	}
}
