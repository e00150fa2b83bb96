package namespaces

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// WithLabels returns patterns that also require these labels of a namespace. Labels are known only from the cluster, so
// the returned patterns are never [Patterns.PlainNames].
func (p Patterns) WithLabels(by labels.Selector) Patterns {
	all := slices.Clone(p)
	for i := range all {
		all[i].labels = by
	}
	return all
}

// LabelSelector returns the selector for the labels of namespaces; nil selects all. All patterns share one selector.
func (p Patterns) LabelSelector() labels.Selector {
	if len(p) == 0 {
		return nil
	}
	return p[0].labels
}

// selectByLabelsOnly reports whether only labels select the namespaces.
func (p Patterns) selectByLabelsOnly() bool {
	return len(p) == 1 && p[0].text == "*" && p[0].labels != nil
}

// selectorText returns the text of a selector, and an empty text for nil.
func selectorText(by labels.Selector) string {
	if by == nil {
		return ""
	}
	return by.String()
}
