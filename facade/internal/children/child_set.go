package children

import (
	"cmp"
	"maps"
	"slices"
)

// childSet is a number of children with their entries. Its methods leave the set and their arguments unchanged, except
// updateOutcomes.
type childSet map[identity]childEntry

// mergedWith merges two sets. For a child in both, the entry of the other set wins. Only a uid or an outcome that the
// other entry lacks is kept.
func (s childSet) mergedWith(others childSet) childSet {
	all := maps.Clone(s)
	if all == nil {
		all = make(childSet, len(others))
	}
	for child, other := range others {
		other.uid = cmp.Or(other.uid, all[child].uid)
		other.run = all[child].run.mergeLater(other.run)
		all[child] = other
	}
	return all
}

// withProofs returns the children of a record with proven uids only. Children that only this process has applied are
// added, because their record was lost. Version and retention are the proven ones as well: a forged record must not
// prevent a deletion. Outcomes in the record are kept, because another process may have observed them.
func (s childSet) withProofs(proven childSet) childSet {
	all := maps.Clone(proven)
	if all == nil {
		all = make(childSet, len(s))
	}
	for child, known := range s {
		proof, isProven := proven[child]
		// A uid in the record is replaced even by an empty one: it proves nothing.
		known.uid = proof.uid
		known.run = proof.run.mergeLater(known.run)
		// The record may claim another version or retention, but only our own apply counts.
		if isProven {
			known.version, known.isRetained = proof.version, proof.isRetained
		}
		all[child] = known
	}
	return all
}

// without returns the children that are not in the other set.
func (s childSet) without(others childSet) childSet {
	rest := childSet{}
	for child, known := range s {
		if _, ok := others[child]; !ok {
			rest[child] = known
		}
	}
	return rest
}

// containsAll reports whether the set contains all of the others, with the same retention. A changed retention must be
// stored before the apply.
func (s childSet) containsAll(others childSet) bool {
	for child, other := range others {
		if known, ok := s[child]; !ok || known.isRetained != other.isRetained {
			return false
		}
	}
	return true
}

// sortedIdentities returns the children in a stable order.
func (s childSet) sortedIdentities() []identity {
	return slices.SortedFunc(maps.Keys(s), func(a, b identity) int {
		return cmp.Or(
			cmp.Compare(a.group, b.group), cmp.Compare(a.kind, b.kind), cmp.Compare(a.namespace, b.namespace),
			cmp.Compare(a.name, b.name),
		)
	})
}

// notOwnable returns the children that must be deleted with a parent in this namespace, but that an owner reference
// cannot hold. A cluster-scoped parent can own every child.
func (s childSet) notOwnable(namespace string) childSet {
	held := childSet{}
	for child, known := range s {
		// Retained children survive the parent, so they need no owner and no finalizer.
		if !known.isRetained && !canOwn(namespace, child) {
			held[child] = known
		}
	}
	return held
}

// withoutUnprovenRetention returns the children without the retention that only a record claims: anyone who may
// annotate the parent can write it. The uids of the set must be proven. Before a deletion, the annotation of the child
// itself is checked.
func (s childSet) withoutUnprovenRetention() childSet {
	all := maps.Clone(s)
	for child, known := range all {
		if known.uid == "" {
			known.isRetained = false
			all[child] = known
		}
	}
	return all
}

// hasRetained reports whether any child is retained.
func (s childSet) hasRetained() bool {
	for _, known := range s {
		if known.isRetained {
			return true
		}
	}
	return false
}

// canOwn reports whether a parent in this namespace can own the child. The garbage collector deletes children whose
// owner it cannot find in their own namespace.
func canOwn(namespace string, child identity) bool {
	return namespace == "" || child.namespace == namespace
}
