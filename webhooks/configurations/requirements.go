package configurations

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// selectorOperators maps the operators of selectors to those of the API. Comparisons of numbers are not in the API.
var selectorOperators = map[selection.Operator]metav1.LabelSelectorOperator{
	selection.Equals: metav1.LabelSelectorOpIn, selection.DoubleEquals: metav1.LabelSelectorOpIn,
	selection.In: metav1.LabelSelectorOpIn, selection.NotEquals: metav1.LabelSelectorOpNotIn,
	selection.NotIn: metav1.LabelSelectorOpNotIn, selection.Exists: metav1.LabelSelectorOpExists,
	selection.DoesNotExist: metav1.LabelSelectorOpDoesNotExist,
}

// SelectorRequirements returns the requirements of the selector that an objectSelector can express, for [Hook.Labels].
// Without the others, the API server sends more requests, but the handler's own filters still apply.
func SelectorRequirements(selector labels.Selector) []metav1.LabelSelectorRequirement {
	given, _ := selector.Requirements()
	var all []metav1.LabelSelectorRequirement
	for _, one := range given {
		operator, known := selectorOperators[one.Operator()]
		if !known {
			continue
		}
		requirement := metav1.LabelSelectorRequirement{Key: one.Key(), Operator: operator}
		if one.Values().Len() > 0 {
			requirement.Values = one.Values().List()
		}
		all = append(all, requirement)
	}
	return all
}

// NamespaceRequirements returns the requirements for [Hook.Namespaces]: the namespace has one of the names in the first
// list, if it is not empty, and none of those in the second.
func NamespaceRequirements(in, notIn []string) (all []metav1.LabelSelectorRequirement) {
	if len(in) > 0 {
		all = append(all, metav1.LabelSelectorRequirement{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: in,
		})
	}
	if len(notIn) > 0 {
		all = append(all, metav1.LabelSelectorRequirement{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: notIn,
		})
	}
	return all
}
