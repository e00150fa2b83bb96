package rules_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/rules"
)

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason, expression string
		options            []rules.Option
		object             client.Object // a Database unless given
		want               string        // empty for none
	}{
		"UnknownField": {
			reason: "an unknown field is reported with its place and a suggestion", expression: "object.spec.sise > 1",
			want: `rule "r": of rules_test.Database: the expression: line 1, column 12: undefined field 'sise': ` +
				`did you mean size?`,
		},
		"UnknownFieldOfOld": {
			reason:     "fields of oldObject are checked as well",
			expression: "oldObject == null || oldObject.spek.size > 1",
			want:       "undefined field 'spek': did you mean spec?",
		},
		"UnlikeAnything": {
			reason: "a field unlike all others gets no suggestion", expression: "object.spec.colour == 'red'",
			want: "undefined field 'colour'",
		},
		"UnknownFieldInList": {
			reason: "fields of list elements are checked", expression: "object.spec.nodes.all(n, n.weigth > 0)",
			want: "undefined field 'weigth': did you mean weight?",
		},
		"UnknownFieldInMapping": {
			reason:     "fields of mapping values are checked",
			expression: "object.spec.byZone['a'].nome == ''", want: "did you mean name?",
		},
		"GoName": {reason: "fields have their JSON names",
			expression: "object.Spec.size > 1", want: "did you mean spec?"},
		"Hidden": {
			reason:     "a field that is not in the JSON is unknown",
			expression: "object.spec.Hidden == ''", want: "undefined field",
		},
		"Several": {reason: "all unknown fields are reported",
			expression: "object.a && object.b", want: "undefined field 'b'"},
		"TextAndNumber": {
			reason:     "a comparison of a text with a number is an error",
			expression: "object.spec.owner > 1", want: "applied to '(string, int)'",
		},
		"Time": {
			reason:     "a comparison of a time field with a timestamp is an error",
			expression: "object.spec.since < timestamp('2020-01-01T00:00:00Z')",
			want:       "applied to '(string, timestamp)'",
		},
		"MessageExpression": {
			reason: "MessageExpression is checked against the type", expression: "object.spec.size > 1",
			options: []rules.Option{rules.MessageExpression("'not ' + object.spec.ouner + string(object.spec.sice)")},
			want:    "MessageExpression: line 1, column 21: undefined field 'ouner': did you mean owner?",
		},
		"Nil": {
			reason:     "a nil prototype is an error",
			expression: "object.spec.size > 1", object: client.Object(nil), want: "prototype is nil",
		},
		"Fine": {
			reason:     "a guarded comparison of both objects is accepted",
			expression: "oldObject == null || object.spec.size >= oldObject.spec.size",
		},
		"Scalars": {
			reason: "numbers of all types can be compared with each other",
			expression: "object.spec.size > 1 && object.spec.ratio > 1 && object.spec.ratio < object.spec.size && " +
				"object.spec.replicas < 3 && object.spec.most < 3 && !object.spec.protected && object.spec.backoff > 5",
		},
		"Converted": {
			reason: "texts can be converted to timestamps and durations",
			expression: "timestamp(object.spec.since) < timestamp('2020-01-01T00:00:00Z') && " +
				"duration(object.spec.timeout) < duration('1h') && object.spec.seed.startsWith('a')",
		},
		"EncodedByThemselves": {
			reason: "fields with their own JSON encoding are not checked",
			expression: "quantity(object.spec.storage).isInteger() && object.spec.Port == 80 && " +
				"object.spec.extra.a == 1 && object.spec.raw.b == 'x' && object.spec.anything.c " +
				"&& object.spec.counted == '5'",
		},
		"WithoutIdentifiers": {
			reason:     "fields that are not identifiers can be read by index",
			expression: "object.spec.hyphens['a-b'] == object.spec.hyphens.c",
		},
		"WithinItself": {
			reason:     "a recursive type is supported",
			expression: "object.spec.nodes[0].children[0].children.size() < 3",
		},
		"Metadata": {
			reason: "keywords after a dot are accepted",
			expression: "object.metadata.namespace != 'kube-system' && 'team' in object.metadata.labels && " +
				"object.metadata.ownerReferences.all(o, o.kind != '') && object.kind == 'Database'",
		},
		"Optional": {
			reason:     "optional fields are accepted",
			expression: "object.spec.?owner.orValue('x') == 'x' || has(object.spec.size)",
		},
		"Pod": {
			reason: "a rule for a built-in kind is accepted", object: &corev1.Pod{},
			expression: "object.spec.containers.all(c, quantity(c.resources.limits['cpu']).isLessThan(quantity('2')))",
		},
		"CRD": {
			reason:     "a rule for the most recursive built-in kind is accepted",
			object:     &apiextensionsv1.CustomResourceDefinition{},
			expression: "object.spec.versions.all(v, v.schema.openAPIV3Schema.type == 'object')",
		},
		"Untyped": {
			reason: "an untyped object accepts all fields", object: &unstructured.Unstructured{},
			expression: "object.sise.any[3] == 5",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			of := tc.object
			if of == nil && name != "Nil" {
				of = &Database{}
			}
			rule := rules.New("r", tc.expression, "m", tc.options...)
			err := rule.Check(of)
			if !containsError(err, tc.want) {
				t.Errorf("%s\nCheck(...): got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}
