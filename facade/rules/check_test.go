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
		of                 client.Object // a Database unless given
		want               string        // empty for none
	}{
		"UnknownField": {
			reason: "the slip is told, its place, and what could be meant", expression: "object.spec.sise > 1",
			want: `rule "r": of rules_test.Database: the expression: line 1, column 12: undefined field 'sise': ` +
				`did you mean size?`,
		},
		"UnknownFieldOfOld": {
			reason: "the old object has the same type", expression: "oldObject == null || oldObject.spek.size > 1",
			want: "undefined field 'spek': did you mean spec?",
		},
		"UnlikeAnything": {
			reason: "no guess is better than a wild one", expression: "object.spec.colour == 'red'",
			want: "undefined field 'colour'",
		},
		"UnknownFieldInList": {
			reason: "elements have types, too", expression: "object.spec.nodes.all(n, n.weigth > 0)",
			want: "undefined field 'weigth': did you mean weight?",
		},
		"UnknownFieldInMapping": {
			reason: "and so have values", expression: "object.spec.byZone['a'].nome == ''", want: "did you mean name?",
		},
		"GoName": {reason: "CEL sees JSON", expression: "object.Spec.size > 1", want: "did you mean spec?"},
		"Hidden": {
			reason: "it is not in the JSON", expression: "object.spec.Hidden == ''", want: "undefined field",
		},
		"Several": {reason: "all slips at once", expression: "object.a && object.b", want: "undefined field 'b'"},
		"TextAndNumber": {
			reason: "a wrong type", expression: "object.spec.owner > 1", want: "applied to '(string, int)'",
		},
		"Time": {
			reason: "objects have a text there", expression: "object.spec.since < timestamp('2020-01-01T00:00:00Z')",
			want: "applied to '(string, timestamp)'",
		},
		"MessageExpression": {
			reason: "it is held to the type as well", expression: "object.spec.size > 1",
			options: []rules.Option{rules.MessageExpression("'not ' + object.spec.ouner + string(object.spec.sice)")},
			want:    "MessageExpression: line 1, column 21: undefined field 'ouner': did you mean owner?",
		},
		"Nil": {
			reason:     "it has no type",
			expression: "object.spec.size > 1", of: client.Object(nil), want: "prototype is nil",
		},
		"Fine": {
			reason:     "the field of the issue",
			expression: "oldObject == null || object.spec.size >= oldObject.spec.size",
		},
		"Scalars": {
			reason: "numbers of all sorts compare, also with each other",
			expression: "object.spec.size > 1 && object.spec.ratio > 1 && object.spec.ratio < object.spec.size && " +
				"object.spec.replicas < 3 && object.spec.most < 3 && !object.spec.protected && object.spec.backoff > 5",
		},
		"Converted": {
			reason: "texts with a meaning are converted",
			expression: "timestamp(object.spec.since) < timestamp('2020-01-01T00:00:00Z') && " +
				"duration(object.spec.timeout) < duration('1h') && object.spec.seed.startsWith('a')",
		},
		"EncodedByThemselves": {
			reason: "nothing is known of them",
			expression: "quantity(object.spec.storage).isInteger() && object.spec.Port == 80 && " +
				"object.spec.extra.a == 1 && object.spec.raw.b == 'x' && object.spec.anything.c " +
				"&& object.spec.counted == '5'",
		},
		"WithoutIdentifiers": {
			reason:     "fields that can only be read by an index",
			expression: "object.spec.hyphens['a-b'] == object.spec.hyphens.c",
		},
		"WithinItself": {
			reason:     "a type that is within itself has an end",
			expression: "object.spec.nodes[0].children[0].children.size() < 3",
		},
		"Metadata": {
			reason: "keywords are fine behind a dot",
			expression: "object.metadata.namespace != 'kube-system' && 'team' in object.metadata.labels && " +
				"object.metadata.ownerReferences.all(o, o.kind != '') && object.kind == 'Database'",
		},
		"Optional": {
			reason:     "fields may be absent",
			expression: "object.spec.?owner.orValue('x') == 'x' || has(object.spec.size)",
		},
		"Pod": {
			reason: "a kind of Kubernetes", of: &corev1.Pod{},
			expression: "object.spec.containers.all(c, quantity(c.resources.limits['cpu']).isLessThan(quantity('2')))",
		},
		"CRD": {
			reason: "the kind that is within itself most", of: &apiextensionsv1.CustomResourceDefinition{},
			expression: "object.spec.versions.all(v, v.schema.openAPIV3Schema.type == 'object')",
		},
		"Untyped": {
			reason: "whatever is written may be there", of: &unstructured.Unstructured{},
			expression: "object.sise.any[3] == 5",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			of := tc.of
			if of == nil && name != "Nil" {
				of = &Database{}
			}
			rule := rules.New("r", tc.expression, "m", tc.options...)
			err := rule.Check(of)
			if !says(err, tc.want) {
				t.Errorf("%s\nCheck(...): got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}
