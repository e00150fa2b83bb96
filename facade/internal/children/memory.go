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

// memory has the children of all parents as this process has applied them. Unlike the records on the parents, no other
// client can write it. The zero value is ready to use.
//
// The informers' goroutines take the mutex. It is never held during a request, nor while a record is decoded.
type memory struct {
	mu       sync.Mutex
	parents  map[types.UID]*parentMemory
	versions map[types.UID]string // of children, as our own requests made them
	found    map[types.UID]string // of children, as they were read before the next request
}

// parentMemory is the memory of one parent. It is dropped when it is empty.
type parentMemory struct {
	// turn lets one call at a time work on the children: two sets are never compared while both change, and nothing is
	// applied while the children of a deleted parent are released. It is nil without callers.
	turn    chan struct{}
	callers int // that work or wait
	sets    []handlerSet
}

// handlerSet has the children that this process has applied for one handler of a parent.
type handlerSet struct {
	record string // the name of the annotation of the handler
	// proof is the text of a record of the children, which takes a fraction of the memory of a set.
	proof   string
	hasHeld bool                      // some of the proven children cannot be owned by the parent
	applied map[identity]*application // those of watched kinds
}

// updateParent has the function change the memory of a parent.
func (m *memory) updateParent(parent types.UID, act func(p *parentMemory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.parents[parent]
	if p == nil {
		p = &parentMemory{}
	}
	act(p)
	p.sets = slices.DeleteFunc(p.sets, func(s handlerSet) bool { return s.proof == "" && len(s.applied) == 0 })
	if p.callers == 0 && len(p.sets) == 0 {
		delete(m.parents, parent)
		return
	}
	if m.parents == nil {
		m.parents = map[types.UID]*parentMemory{}
	}
	m.parents[parent] = p
}

// setOf returns the set of a handler, which is added if it is missing. It is valid until the next set is added.
func (p *parentMemory) setOf(record string) *handlerSet {
	i := slices.IndexFunc(p.sets, func(s handlerSet) bool { return s.record == record })
	if i < 0 {
		i = len(p.sets)
		p.sets = append(p.sets, handlerSet{record: record})
	}
	return &p.sets[i]
}

// sets returns the sets of the handlers of a parent. The caller holds the lock.
func (m *memory) sets(parent types.UID) []handlerSet {
	if p := m.parents[parent]; p != nil {
		return p.sets
	}
	return nil
}

// awaitTurn waits until no other call works on the children of the parent. The caller must call leave after its work.
func (m *memory) awaitTurn(ctx context.Context, parent types.UID) (leave func(), err error) {
	var turn chan struct{}
	m.updateParent(parent, func(p *parentMemory) {
		if p.callers++; p.turn == nil {
			p.turn = make(chan struct{}, 1)
		}
		turn = p.turn
	})
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

// proven returns the children that this process has applied for the parent, by the records of its handlers.
func (m *memory) proven(parent types.UID) map[string]set {
	m.mu.Lock()
	var kept []handlerSet
	for _, s := range m.sets(parent) {
		if s.proof != "" {
			kept = append(kept, s)
		}
	}
	m.mu.Unlock()
	all := make(map[string]set, len(kept))
	for _, s := range kept {
		all[s.record], _ = decodeRecord(s.proof, parent) // the text was made by encodeRecord
	}
	return all
}

// prove replaces the proven children of one handler of a parent in this namespace.
func (m *memory) prove(parent types.UID, namespace, record string, children set) {
	text, err := encodeRecord(parent, children)
	if err != nil || len(children) == 0 { // strings can be encoded; without a proof, the child is checked again
		text, children = "", nil
	}
	hasHeld := len(children.held(namespace)) > 0
	m.updateParent(parent, func(p *parentMemory) {
		s := p.setOf(record)
		s.proof, s.hasHeld = text, hasHeld
	})
}

// hasHeld is true if the parent cannot own some of its proven children.
func (m *memory) hasHeld(parent types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.sets(parent), func(s handlerSet) bool { return s.hasHeld })
}

// addApplied notes a child that was applied for a handler of the parent.
func (m *memory) addApplied(parent types.UID, record string, one *application) {
	m.updateParent(parent, func(p *parentMemory) {
		s := p.setOf(record)
		if s.applied == nil {
			s.applied = map[identity]*application{}
		}
		s.applied[one.child.identity] = one
	})
}

// dropApplied forgets a child that is declared again, and returns its former application.
func (m *memory) dropApplied(parent types.UID, record string, child identity) (one *application) {
	m.updateParent(parent, func(p *parentMemory) {
		applied := p.setOf(record).applied
		one = applied[child]
		delete(applied, child)
	})
	return one
}

// keepDeclared forgets the applications of children that the handler no longer declares.
func (m *memory) keepDeclared(parent types.UID, record string, declared set) {
	m.updateParent(parent, func(p *parentMemory) {
		maps.DeleteFunc(p.setOf(record).applied, func(child identity, _ *application) bool {
			_, ok := declared[child]
			return !ok
		})
	})
}

// forgetApplied drops the applications of a parent, and the versions of their children.
func (m *memory) forgetApplied(parent types.UID) {
	m.updateParent(parent, func(p *parentMemory) {
		for i, s := range p.sets {
			for _, one := range s.applied {
				delete(m.versions, one.uid)
				delete(m.found, one.uid)
			}
			p.sets[i].applied = nil
		}
	})
}

// noteRead notes the version of a child of a watched kind before our own request.
func (k *Keeper) noteRead(child *metav1.PartialObjectMetadata) {
	if !k.isWatched(child.GroupVersionKind().GroupKind()) {
		return
	}
	k.memory.mu.Lock()
	defer k.memory.mu.Unlock()
	if k.memory.found == nil {
		k.memory.found = map[types.UID]string{}
	}
	k.memory.found[child.UID] = child.ResourceVersion
}

// noteWrite notes the version that our own request made of a child. A version that was read before the request is not
// ours. If none was read, the version is ours only if hasChanged: the child differs from the former declaration.
func (m *memory) noteWrite(made *unstructured.Unstructured, hasChanged bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, wasRead := m.found[made.GetUID()]
	delete(m.found, made.GetUID())
	if wasRead && before == made.GetResourceVersion() || !wasRead && !hasChanged {
		return
	}
	if m.versions == nil {
		m.versions = map[types.UID]string{}
	}
	m.versions[made.GetUID()] = made.GetResourceVersion()
}
