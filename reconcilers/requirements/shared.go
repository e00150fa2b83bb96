package requirements

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// maxSelectorLength is the maximum number of characters of a selector. Selectors are part of URLs, and servers and
// proxies limit the length of URLs.
const maxSelectorLength = 1000

// SharedLabels returns the label requirements that all of the handlers have in common, so that a watch can leave out
// objects without these labels. It returns nil if there are none. The function demands returns the selector of one
// handler, nil if it accepts all labels, and whether the handler needs objects at all.
func SharedLabels[H any](all []H, demands func(H) (of labels.Selector, looks bool)) labels.Selector {
	var shared labels.Requirements
	first := true
	for _, one := range all {
		selector, looks := demands(one)
		switch {
		case !looks:
			continue
		// One handler without requirements needs all objects.
		case selector == nil:
			return nil
		}
		own, _ := selector.Requirements()
		if first {
			shared, first = own, false
		}
		// DeleteFunc works in place. Without the clone, it would modify the selector of the first handler.
		shared = slices.DeleteFunc(slices.Clone(shared), func(one labels.Requirement) bool {
			return !slices.ContainsFunc(own, one.Equal)
		})
	}
	if len(shared) == 0 {
		return nil
	}
	// Without a selector, the watch delivers more objects than necessary, but none is missed.
	if selector := labels.NewSelector().Add(shared...); len(selector.String()) <= maxSelectorLength {
		return selector
	}
	return nil
}
