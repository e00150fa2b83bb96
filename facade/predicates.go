package kopf

import "slices"

// All joins predicates of [Selection.When], [WhenChange] and patterns with and. Kopf: all_.
//
//	dbs.When(kopf.All(isLarge, kopf.Not(isPaused)))
func All[A, B any](predicates ...func(A, B) bool) func(A, B) bool {
	own := slices.Clone(predicates)
	return func(a A, b B) bool {
		return !slices.ContainsFunc(own, func(is func(A, B) bool) bool { return !is(a, b) })
	}
}

// Any joins predicates with or. Kopf: any_.
func Any[A, B any](predicates ...func(A, B) bool) func(A, B) bool {
	own := slices.Clone(predicates)
	return func(a A, b B) bool {
		return slices.ContainsFunc(own, func(is func(A, B) bool) bool { return is(a, b) })
	}
}

// Not negates a predicate. Kopf: not_.
func Not[A, B any](predicate func(A, B) bool) func(A, B) bool {
	return func(a A, b B) bool { return !predicate(a, b) }
}
