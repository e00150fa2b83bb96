package namespaces

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// Labelled returns patterns that also require these labels of a namespace. Labels are known only from the cluster, so
// the returned patterns are never [Patterns.Plain].
func (p Patterns) Labelled(by labels.Selector) Patterns {
	all := slices.Clone(p)
	for i := range all {
		all[i].labels = by
	}
	return all
}

// Labels returns the selector for the labels of namespaces; nil selects all. All patterns share one selector.
func (p Patterns) Labels() labels.Selector {
	if len(p) == 0 {
		return nil
	}
	return p[0].labels
}

// takeAnyName reports whether only labels select the namespaces.
func (p Patterns) takeAnyName() bool { return len(p) == 1 && p[0].text == "*" && p[0].labels != nil }

// textOf returns the text of a selector, and an empty text for nil.
func textOf(by labels.Selector) string {
	if by == nil {
		return ""
	}
	return by.String()
}
