package attendance

import (
	"sync"

	"github.com/kopf-runtime/kopf-runtime/peering"
)

// Gate is the gate of one namespace. It also counts what runs behind it: see [peering.Member].
type Gate interface {
	peering.Gate
	Busy() int
	Idle() <-chan struct{}
}

// PauseNamespaces lets the peering of each namespace close the gate of this namespace instead of the operator's gate.
// The operator's gate is closed while those of all namespaces are, because cluster-scoped objects belong to the peers
// then, too. It must be called before Run.
func (a *Attendance) PauseNamespaces(gates func(namespace string) Gate) {
	a.namespaces = &namespaceGates{
		gates: gates, whole: peering.ClosedByAll(a.gate.Add()), all: map[string]*namespaceGate{},
	}
}

// namespaceGates are the gates of all namespaces.
type namespaceGates struct {
	gates func(namespace string) Gate
	whole *peering.CombinedGate // of all namespaces

	mu  sync.Mutex
	all map[string]*namespaceGate
}

// namespaceGate is the gate of one namespace.
type namespaceGate struct {
	gate     Gate
	combined *peering.CombinedGate // of the peering objects in the namespace
	part     *peering.GatePart     // of the operator's gate
	objects  int
}

// acquire returns the gate of a namespace for one more peering object.
func (n *namespaceGates) acquire(namespace string) *namespaceGate {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.all[namespace]
	if one == nil {
		one = &namespaceGate{gate: n.gates(namespace), part: n.whole.Add()}
		one.combined = peering.ClosedByAny(peering.Gates{one.gate, one.part})
		n.all[namespace] = one
	}
	one.objects++
	return one
}

// release removes the part of one peering object, and undoes acquire. The last part of a namespace opens its gate, so
// the operator's gate must not depend on that gate any more. With a nil receiver, only the part is removed.
func (n *namespaceGates) release(namespace string, part *peering.GatePart) {
	if n == nil {
		part.Remove()
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.all[namespace]
	if one.objects--; one.objects == 0 {
		delete(n.all, namespace)
		one.part.Remove()
	}
	part.Remove()
}
