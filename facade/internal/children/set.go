package children

import (
	"cmp"
	"maps"
	"slices"
)

// set is a number of children with their entries. Its methods leave the set and their arguments unchanged, except
// updateOutcomes.
type set map[identity]entry

// with merges two sets. For a child in both, the entry of the other set wins. Only a uid or an outcome that the other
// entry lacks is kept.
func (s set) with(others set) set {
	all := maps.Clone(s)
	if all == nil {
		all = make(set, len(others))
	}
	for child, other := range others {
		other.uid = cmp.Or(other.uid, all[child].uid)
		other.run = all[child].run.then(other.run)
		all[child] = other
	}
	return all
}

// proven returns the children of a record with proven uids only. Children that only this process has applied are added,
// because their record was lost. Version and retention are the proven ones as well: a forged record must not prevent a
// deletion. Outcomes in the record are kept, because another process may have observed them.
func (s set) proven(proven set) set {
	all := maps.Clone(proven)
	if all == nil {
		all = make(set, len(s))
	}
	for child, known := range s {
		proof, isProven := proven[child]
		// A uid in the record is replaced even by an empty one: it proves nothing.
		known.uid = proof.uid
		known.run = proof.run.then(known.run)
		// The record may claim another version or retention, but only our own apply counts.
		if isProven {
			known.version, known.retained = proof.version, proof.retained
		}
		all[child] = known
	}
	return all
}

// without returns the children that are not in the other set.
func (s set) without(others set) set {
	rest := set{}
	for child, known := range s {
		if _, ok := others[child]; !ok {
			rest[child] = known
		}
	}
	return rest
}

// has reports whether the set contains all of the others, with the same retention. A changed retention must be stored
// before the apply.
func (s set) has(others set) bool {
	for child, other := range others {
		if known, ok := s[child]; !ok || known.retained != other.retained {
			return false
		}
	}
	return true
}

// sorted returns the children in a stable order.
func (s set) sorted() []identity {
	return slices.SortedFunc(maps.Keys(s), func(a, b identity) int {
		return cmp.Or(
			cmp.Compare(a.group, b.group), cmp.Compare(a.kind, b.kind), cmp.Compare(a.namespace, b.namespace),
			cmp.Compare(a.name, b.name),
		)
	})
}

// held returns the children that must be deleted with a parent in this namespace, but that an owner reference cannot
// hold. A cluster-scoped parent can own every child.
func (s set) held(namespace string) set {
	held := set{}
	for child, known := range s {
		// Retained children survive the parent, so they need no owner and no finalizer.
		if !known.retained && !owns(namespace, child) {
			held[child] = known
		}
	}
	return held
}

// distrusted returns the children without the retention that only a record claims: anyone who may annotate the parent
// can write it. The uids of the set must be proven. Before a deletion, the annotation of the child itself is checked.
func (s set) distrusted() set {
	all := maps.Clone(s)
	for child, known := range all {
		if known.uid == "" {
			known.retained = false
			all[child] = known
		}
	}
	return all
}

// hasRetained reports whether any child is retained.
func (s set) hasRetained() bool {
	for _, known := range s {
		if known.retained {
			return true
		}
	}
	return false
}

// owns reports whether a parent in this namespace can own the child. The garbage collector deletes children whose owner
// it cannot find in their own namespace.
func owns(namespace string, child identity) bool {
	return namespace == "" || child.namespace == namespace
}

// equal reports whether both sets have the same children with the same entries.
func (s set) equal(other set) bool { return maps.Equal(s, other) }
