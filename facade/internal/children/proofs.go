package children

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// proofs are the children that this process has applied itself, by their parents. Unlike the records on the parents,
// nobody else can write them. The zero value is ready to use.
type proofs struct {
	mu      sync.Mutex
	parents map[types.UID][]proof
}

// proof is what one handler of a parent has applied. The text is that of a record, which takes a fraction of the
// memory of a set.
type proof struct {
	record  string // the name of the annotation of the handler
	text    string
	hasHeld bool // some of the children cannot be owned by the parent
}

// of returns the proven children of the parent by the records of its handlers.
func (p *proofs) of(parent types.UID) map[string]set {
	p.mu.Lock()
	found := slices.Clone(p.parents[parent])
	p.mu.Unlock()
	if len(found) == 0 {
		return nil
	}
	all := make(map[string]set, len(found))
	for _, one := range found {
		all[one.record], _ = decodeRecord(one.text, parent) // the text was made by encodeRecord
	}
	return all
}

// put replaces the proven children of one handler of a parent in this namespace.
func (p *proofs) put(parent types.UID, namespace, record string, children set) {
	text, err := encodeRecord(parent, children)
	if err != nil { // never of strings; without a proof, the child is looked at again
		children = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	rest := slices.DeleteFunc(p.parents[parent], func(one proof) bool { return one.record == record })
	if len(children) > 0 {
		rest = append(rest, proof{record, text, len(children.held(namespace)) > 0})
	}
	if len(rest) == 0 {
		delete(p.parents, parent)
		return
	}
	if p.parents == nil {
		p.parents = map[types.UID][]proof{}
	}
	p.parents[parent] = rest
}

// hasHeld is true if the parent cannot own some of its proven children.
func (p *proofs) hasHeld(parent types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.parents[parent], func(one proof) bool { return one.hasHeld })
}

func (p *proofs) forget(parent types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.parents, parent)
}
