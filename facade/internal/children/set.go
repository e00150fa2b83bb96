package children

import (
	"cmp"
	"maps"
	"slices"
)

// set is children with what is known of them.
type set map[identity]entry

// with is the set and others beside it. Of a child in both, the version is that of the other one, and so is whether it
// is retained; a uid and an outcome that are known stay known.
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

// proven returns the children with the uids that this process has proven, and with those alone; children that only this
// process has applied are added: their record was lost. The version, and whether a child is retained, are those that
// this process has proven, too: a forged record must not keep a child from being deleted. The record is right about how
// children have ended: another process may have seen it.
func (s set) proven(proven set) set {
	all := maps.Clone(proven)
	if all == nil {
		all = make(set, len(s))
	}
	for child, known := range s {
		proof, isProven := proven[child]
		known.uid = proof.uid
		known.run = proof.run.then(known.run)
		if isProven {
			known.version, known.retained = proof.version, proof.retained
		}
		all[child] = known
	}
	return all
}

// without are the children that the others do not have.
func (s set) without(others set) set {
	rest := set{}
	for child, known := range s {
		if _, ok := others[child]; !ok {
			rest[child] = known
		}
	}
	return rest
}

// has reports whether all of the others are in the set, with the same retention.
func (s set) has(others set) bool {
	for child, other := range others {
		if known, ok := s[child]; !ok || known.retained != other.retained {
			return false
		}
	}
	return true
}

// sorted are the children in an order that is always the same.
func (s set) sorted() []identity {
	return slices.SortedFunc(maps.Keys(s), func(a, b identity) int {
		return cmp.Or(
			cmp.Compare(a.group, b.group), cmp.Compare(a.kind, b.kind), cmp.Compare(a.namespace, b.namespace),
			cmp.Compare(a.name, b.name),
		)
	})
}

// held are the children that an owner reference to a parent in this namespace cannot hold, and that go with it. A
// parent without a namespace can own everything.
func (s set) held(namespace string) set {
	held := set{}
	for child, known := range s {
		if !known.retained && !owns(namespace, child) {
			held[child] = known
		}
	}
	return held
}

// distrusted returns the children without the retention that only a record claims: everybody who may annotate the
// parent can write one. The set has the uids that are proven. Before a child is deleted, the child itself is asked.
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

func (s set) hasRetained() bool {
	for _, known := range s {
		if known.retained {
			return true
		}
	}
	return false
}

// owns tells whether a parent in this namespace can own the child: the API server's garbage collector deletes children
// whose owner reference it cannot resolve.
func owns(namespace string, child identity) bool {
	return namespace == "" || child.namespace == namespace
}

// equal tells whether both have the same children, and know the same of them.
func (s set) equal(other set) bool { return maps.Equal(s, other) }
