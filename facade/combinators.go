package facade

import "slices"

// The combinators take and give predicates of any two arguments, so they fit into [Selection.When],
// [Selection.WhenChange] and the patterns of values, labels and annotations:
//
//	dbs.When(facade.All(isLarge, facade.Not(isPaused)))
//	facade.Value(facade.Any(isSmall, isEven))
//
// They ask no more of their members than is needed. A nil member panics when it is asked, which fails the filter.

// Not is true if the predicate is false. Kopf: not_.
func Not[A, B any](predicate func(A, B) bool) func(A, B) bool {
	return func(a A, b B) bool { return !predicate(a, b) }
}

// All is true if all predicates are, and if there are none. Kopf: all_.
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

// None is true if no predicate is. Kopf: none_.
func None[A, B any](predicates ...func(A, B) bool) func(A, B) bool {
	return Not(Any(predicates...))
}
