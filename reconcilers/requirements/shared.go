package requirements

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// longest is how many characters a selector may have to be a part of URLs.
const longest = 1000

// Shared is what all of them demand of labels, so that nobody looks at objects without these; nil is nothing. The
// function gives what one demands, nil if that is nothing, and whether it looks at objects at all.
func Shared[H any](all []H, demands func(H) (of labels.Selector, looks bool)) labels.Selector {
	var shared labels.Requirements
	first := true
	for _, one := range all {
		selector, looks := demands(one)
		switch {
		case !looks:
			continue
		case selector == nil:
			return nil
		}
		own, _ := selector.Requirements()
		if first {
			shared, first = own, false
		}
		shared = slices.DeleteFunc(slices.Clone(shared), func(one labels.Requirement) bool {
			return !slices.ContainsFunc(own, one.Equal)
		})
	}
	if len(shared) == 0 {
		return nil
	}
	if selector := labels.NewSelector().Add(shared...); len(selector.String()) <= longest {
		return selector
	}
	return nil
}
