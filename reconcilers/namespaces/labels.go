package namespaces

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// Labelled returns the patterns for those namespaces that also have these labels. Only the cluster says which these
// are, so none of the patterns is [Patterns.Plain] any more.
func (p Patterns) Labelled(by labels.Selector) Patterns {
	all := slices.Clone(p)
	for i := range all {
		all[i].labels = by
	}
	return all
}

// Labels returns what the labels of the namespaces must match in addition; nil is anything.
func (p Patterns) Labels() labels.Selector {
	if len(p) == 0 {
		return nil
	}
	return p[0].labels
}

// takeAnyName reports whether labels alone decide.
func (p Patterns) takeAnyName() bool { return len(p) == 1 && p[0].text == "*" && p[0].labels != nil }

func textOf(by labels.Selector) string {
	if by == nil {
		return ""
	}
	return by.String()
}
