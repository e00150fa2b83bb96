// Package layers checks the dependency rules of this repository: it parses the Go sources and reports every import that
// goes up or sideways, every package that has no place in the plan or whose files use each other in circles, every kit
// for tests that is not marked as one, and every breach of the house rules on size, exports and documentation, and on
// who may branch on what.
//
// It stands apart because it reads the whole repository as text, where every other package sees only its imports. It
// never builds or runs the sources, so it also checks code that does not compile yet or is meant for another platform.
//
// Its neighbours are the linters (.golangci.yml), which see one package at a time. To give a new package its place,
// edit [RepositoryPlan] in plan.go.
package layers
