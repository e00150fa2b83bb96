package conditions_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kopf-runtime/kopf-runtime/internal/conditions"
)

const conditionProperties = "{type: {}, status: {}, reason: {}, message: {}, " +
	"lastTransitionTime: {}, observedGeneration: {}}"

func inStatus(fields string) string { return "properties: {status: {properties: {" + fields + "}}}" }

func TestMisfit(t *testing.T) {
	for name, c := range map[string]struct {
		reason, schema, want string
		observed             bool
	}{
		"as kubebuilder makes it": {
			"the schema that kubebuilder generates fits",
			inStatus(`observedGeneration: {}, conditions: {type: array, items: {
				properties: ` + conditionProperties + `, required: [type, status]}}`), "", true,
		},
		"without observedGeneration": {
			"without a field in the status, each condition has its observedGeneration",
			inStatus(`conditions: {type: array, items: {properties: ` + conditionProperties + `}}`),
			"", false,
		},
		"a status of anything": {
			"a status that preserves unknown fields fits",
			`properties: {status: {x-kubernetes-preserve-unknown-fields: true}}`, "", true,
		},
		"an object of anything": {"an object that preserves unknown fields fits",
			`x-kubernetes-preserve-unknown-fields: true`, "", true},
		"a status with more": {
			"a status with additional properties fits", `properties: {status: {additionalProperties: {type: object}}}`,
			"", true,
		},
		"conditions of anything": {"a schema without items fits", inStatus(`conditions: {}`), "", false},
		"referred to": {
			"references are followed, as in schemas of built-in kinds", `properties: {status: {allOf: [{$ref: S}]}}`,
			"", false,
		},
		"no status": {"a schema without a status does not fit", `properties: {spec: {}}`,
			"the schema has no status", false},
		"no conditions": {"a status without conditions does not fit", inStatus(`a: {}`),
			"no status.conditions", false},
		"conditions as a mapping": {"conditions as a mapping do not fit", inStatus(`conditions: {type: object}`),
			"not a list", false},
		"conditions of an old format": {
			"conditions that lack fields do not fit", inStatus(`conditions: {type: array, items: {
				properties: {type: {}, status: {}, reason: {}, message: {}}}}`),
			"lastTransitionTime, observedGeneration", false,
		},
		"more is required": {
			"conditions with further required fields do not fit", inStatus(`conditions: {type: array, items: {
				properties: ` + conditionProperties + `, required: [type, severity]}}`),
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
			why, observed := conditions.SchemaMisfit(schema, resolve)
			if (why == "") != (c.want == "") || !strings.Contains(why, c.want) || observed != c.observed {
				t.Errorf("%s: %q, observedGeneration: %t", c.reason, why, observed)
			}
		})
	}
}
