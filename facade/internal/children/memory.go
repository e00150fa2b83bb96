package children

import (
	"context"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// memory holds the children of all parents as this process has applied them. Unlike the records on the parents, other
// clients cannot write it, so only the memory proves the uid of a child. The zero value is ready to use.
//
// Informers call some methods on their goroutines while other locks are held. So the mutex is never held during a
// request, nor while a record is decoded.
type memory struct {
	mu              sync.Mutex
	parents         map[types.UID]*parentMemory
	writtenVersions map[types.UID]string // by child: the version that our last write returned
	readVersions    map[types.UID]string // by child: the version that was read before the next write
}

// parentMemory is the memory of one parent. It is dropped when it is empty.
type parentMemory struct {
	// turn is a lock with one slot, which lets one call at a time work on the children. Two sets are never compared
	// while both change, and nothing is applied while the children of a deleted parent are released. It is nil without
	// callers. A channel is used because waiting must end with the context.
	turn    chan struct{}
	callers int // that work or wait; the last one removes the channel
	sets    []handlerSet
}

// handlerSet holds the children that this process has applied for one handler of a parent.
type handlerSet struct {
	recordName string // the annotation with the record of the handler
	// proof is the encoded record of the applied children. The text takes a fraction of the memory of a set.
	proof           string
	hasHeld         bool                       // some of these children cannot be owned by the parent
	appliedChildren map[identity]*appliedChild // only children of watched kinds
}

// updateParent calls the function with the memory of a parent, under the lock. It creates the memory if necessary, and
// drops it if it is empty afterwards.
func (m *memory) updateParent(parent types.UID, act func(p *parentMemory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.parents[parent]
	if p == nil {
		p = &parentMemory{}
	}
	act(p)
	// Empty sets and parents are dropped, so that the memory does not grow with deleted objects.
	p.sets = slices.DeleteFunc(p.sets, func(s handlerSet) bool { return s.proof == "" && len(s.appliedChildren) == 0 })
	if p.callers == 0 && len(p.sets) == 0 {
		delete(m.parents, parent)
		return
	}
	if m.parents == nil {
		m.parents = map[types.UID]*parentMemory{}
	}
	m.parents[parent] = p
}

// setOf returns the set of a handler and adds it if it is missing. The pointer is valid until the next set is added,
// because the slice may move.
func (p *parentMemory) setOf(record string) *handlerSet {
	i := slices.IndexFunc(p.sets, func(s handlerSet) bool { return s.recordName == record })
	if i < 0 {
		i = len(p.sets)
		p.sets = append(p.sets, handlerSet{recordName: record})
	}
	return &p.sets[i]
}

// parentSets returns the sets of the handlers of a parent. The caller must hold the lock.
func (m *memory) parentSets(parent types.UID) []handlerSet {
	if p := m.parents[parent]; p != nil {
		return p.sets
	}
	return nil
}

// awaitTurn waits until no other call works on the children of the parent, or until the context ends. The caller must
// call leave after its work.
func (m *memory) awaitTurn(ctx context.Context, parent types.UID) (leave func(), err error) {
	// Counting the caller before the wait keeps the channel alive while it waits.
	var turn chan struct{}
	m.updateParent(parent, func(p *parentMemory) {
		if p.callers++; p.turn == nil {
			p.turn = make(chan struct{}, 1)
		}
		turn = p.turn
	})
	// The channel is dropped with its last caller. A waiting caller still has it, and was counted.
	part := func() {
		m.updateParent(parent, func(p *parentMemory) {
			if p.callers--; p.callers == 0 {
				p.turn = nil
			}
		})
	}
	select {
	case turn <- struct{}{}:
		return func() {
			<-turn
			part()
		}, nil
	case <-ctx.Done():
		part()
		return nil, context.Cause(ctx)
	}
}

// provenRecords returns the children that this process has applied for the parent, by the names of their records.
func (m *memory) provenRecords(parent types.UID) map[string]childSet {
	m.mu.Lock()
	var kept []handlerSet
	for _, s := range m.parentSets(parent) {
		if s.proof != "" {
			kept = append(kept, s)
		}
	}
	// The texts are immutable, so they are decoded without the lock: a large record takes long, and informers need the
	// lock.
	m.mu.Unlock()
	all := make(map[string]childSet, len(kept))
	for _, s := range kept {
		all[s.recordName], _ = decodeRecord(s.proof, parent) // encodeRecord made the text, so it is valid
	}
	return all
}

// replaceProof replaces the proven children of one handler of a parent. The namespace is that of the parent.
func (m *memory) replaceProof(parent types.UID, namespace, record string, children childSet) {
	text, err := encodeRecord(parent, children)
	if err != nil || len(children) == 0 { // strings always encode; without a proof, the child is read again
		text, children = "", nil
	}
	hasHeld := len(children.notOwnable(namespace)) > 0
	m.updateParent(parent, func(p *parentMemory) {
		s := p.setOf(record)
		s.proof, s.hasHeld = text, hasHeld
	})
}

// hasHeld reports whether the parent has proven children that it cannot own.
func (m *memory) hasHeld(parent types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.parentSets(parent), func(s handlerSet) bool { return s.hasHeld })
}

// addApplied stores the application of a child for a handler of the parent.
func (m *memory) addApplied(parent types.UID, record string, one *appliedChild) {
	m.updateParent(parent, func(p *parentMemory) {
		s := p.setOf(record)
		if s.appliedChildren == nil {
			s.appliedChildren = map[identity]*appliedChild{}
		}
		s.appliedChildren[one.child.identity] = one
	})
}

// dropApplied removes the application of a child that is declared again, and returns it. Without it, an informer's
// event during the new apply cannot count as drift.
func (m *memory) dropApplied(parent types.UID, record string, child identity) (one *appliedChild) {
	m.updateParent(parent, func(p *parentMemory) {
		applied := p.setOf(record).appliedChildren
		one = applied[child]
		delete(applied, child)
	})
	return one
}

// keepDeclared removes the applications of children that the handler no longer declares: their deletion is not drift.
func (m *memory) keepDeclared(parent types.UID, record string, declared childSet) {
	m.updateParent(parent, func(p *parentMemory) {
		maps.DeleteFunc(p.setOf(record).appliedChildren, func(child identity, _ *appliedChild) bool {
			_, ok := declared[child]
			return !ok
		})
	})
}

// forgetApplied removes all applications of a parent, and the versions of their children.
func (m *memory) forgetApplied(parent types.UID) {
	m.updateParent(parent, func(p *parentMemory) {
		for i, s := range p.sets {
			for _, one := range s.appliedChildren {
				delete(m.writtenVersions, one.uid)
				delete(m.readVersions, one.uid)
			}
			p.sets[i].appliedChildren = nil
		}
	})
}

// noteRead stores the version of a watched child that was read before our own write. See noteWrite.
func (k *Keeper) noteRead(child *metav1.PartialObjectMetadata) {
	if !k.isWatched(child.GroupVersionKind().GroupKind()) {
		return
	}
	k.memory.mu.Lock()
	defer k.memory.mu.Unlock()
	if k.memory.readVersions == nil {
		k.memory.readVersions = map[types.UID]string{}
	}
	k.memory.readVersions[child.UID] = child.ResourceVersion
}

// noteWrite stores the version that our own request returned for a child, so that its event can be recognized as an own
// write. An apply without a change returns the version of another client's write. So a version that was read before the
// request is not ours. If none was read, the version is ours only if hasChanged: the child differs from the former
// declaration.
func (m *memory) noteWrite(made *unstructured.Unstructured, hasChanged bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, wasRead := m.readVersions[made.GetUID()]
	// The version that was read is valid for one write only.
	delete(m.readVersions, made.GetUID())
	if wasRead && before == made.GetResourceVersion() || !wasRead && !hasChanged {
		return
	}
	if m.writtenVersions == nil {
		m.writtenVersions = map[types.UID]string{}
	}
	m.writtenVersions[made.GetUID()] = made.GetResourceVersion()
}
