package conformance_test

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/facade/rules"
)

// policies holds the rules of the table by policy. A policy applies to the objects with its name in their label.
var policies = map[string][]*rules.Rule{
	"grows": {rules.New(
		"grows", "oldObject == null || object.spec.size >= oldObject.spec.size", "the size never shrinks",
	)},
	"late": {rules.New( // the guard follows the read
		"late", "object.spec.size >= oldObject.spec.size || oldObject == null", "the size never shrinks",
		rules.MessageExpression("'the size never shrinks below ' + string(oldObject.spec.size)"),
	)},
	"owner": {rules.New(
		"owner", "object.spec.owner == oldObject.spec.owner", "the owner stays", rules.Operations("UPDATE"),
		rules.Reason(metav1.StatusReasonForbidden),
	)},
	"protected": {rules.New(
		"protected", "!has(oldObject.spec.protected) || oldObject.spec.protected != true", "",
		rules.Operations("DELETE"), rules.Reason(metav1.StatusReasonForbidden),
		rules.MessageExpression("oldObject.metadata.name + ' is protected'"),
	)},
	"any": {rules.New(
		"any", "object == null || oldObject == null || object.spec == oldObject.spec", "specs stay",
		rules.Operations("CREATE", "UPDATE", "DELETE"),
	)},
	"items": {rules.New(
		"items", "object.spec.items.all(i, i.weight > 0 && object.spec.items.exists_one(j, j.name == i.name))",
		"items are named once, and weigh something", rules.MessageExpression(
			"'wrong items: ' + object.spec.items.filter(i, i.weight <= 0).map(i, i.name).join(', ')",
		),
	)},
	"costly": {rules.New(
		"costly", "object.spec.l.all(a, object.spec.l.all(b, object.spec.l.all(c, a + b + c >= 0)))", "too much",
	)},
	"kubernetes": {rules.New(
		"kubernetes", strings.Join([]string{
			"quantity(object.spec.storage).compareTo(quantity('10Gi')) <= 0",
			"duration(object.spec.timeout) <= duration('1h')",
			"cidr(object.spec.range).containsIP('10.0.0.1')",
			"url(object.spec.url).getScheme() == 'https'",
			"object.spec.?replicas.orValue(1) <= 5",
			"object.metadata.name.matches('^[a-z]+(-[0-9]+)?$')",
		}, " &&\n"), "out of bounds", rules.Reason(metav1.StatusReasonRequestEntityTooLarge),
	)},
	// One policy contains rules for different operations.
	"several": {
		rules.New("created", "object.spec.size == 1", "begin with 1", rules.Operations("CREATE")),
		rules.New("updated", "object.spec.size == oldObject.spec.size + 1", "", rules.Operations("UPDATE")),
		rules.New("deleted", "oldObject.spec.size == 3 // no more", "end with 3", rules.Operations("DELETE"),
			rules.Reason(metav1.StatusReasonForbidden)),
		rules.New("always", "object == null || object.spec.size < 10", "stay below 10",
			rules.Operations("CREATE", "UPDATE", "DELETE")),
	},
}
