package kopf

import "slices"

// All is true if all predicates are, and if there are none. Kopf: all_.
//
// All, [Any], [None] and [Not] take and give predicates of any two arguments, so they fit into [Selection.When],
// [Selection.WhenChange] and the patterns of values, labels and annotations:
//
//	dbs.When(kopf.All(isLarge, kopf.Not(isPaused)))
//	dbs.OnCreate("small", fn, kopf.InField("spec.size"), kopf.Value(kopf.Any(isSmall, isEven)))
//
// They ask no more of their members than is needed. A nil member panics when it is asked, which fails the filter.
func All[A, B any](predicates ...func(A, B) bool) func(A, B) bool {
	own := slices.Clone(predicates)
	return func(a A, b B) bool {
		return !slices.ContainsFunc(own, func(is func(A, B) bool) bool { return !is(a, b) })
	}
}

// Any is true if at least one predicate is; with none, it is false. Kopf: any_.
func Any[A, B any](predicates ...func(A, B) bool) func(A, B) bool {
	own := slices.Clone(predicates)
	return func(a A, b B) bool {
		return slices.ContainsFunc(own, func(is func(A, B) bool) bool { return is(a, b) })
	}
}

// Not is true if the predicate is false. Kopf: not_.
func Not[A, B any](predicate func(A, B) bool) func(A, B) bool {
	return func(a A, b B) bool { return !predicate(a, b) }
}
