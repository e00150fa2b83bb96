package peering

import (
	"sync"
	"time"
)

// CombinedGate derives the state of one gate from several parts. All methods may be called concurrently.
type CombinedGate struct {
	mu            sync.Mutex
	gate          WriteGate
	isClosedByAll bool // closed only if all parts are closed; otherwise one closed part is enough
	parts         map[*GatePart]struct{}
}

// ClosedByAny returns a combined gate that is closed while any of its parts is closed. Writes end with the first part.
func ClosedByAny(gate WriteGate) *CombinedGate {
	return &CombinedGate{gate: gate, parts: map[*GatePart]struct{}{}}
}

// closedByAll returns a combined gate that is closed while all of its parts are closed. Writes end with the last part.
func closedByAll(gate WriteGate) *CombinedGate {
	return &CombinedGate{gate: gate, parts: map[*GatePart]struct{}{}, isClosedByAll: true}
}

// GatePart is one part of a combined gate.
type GatePart struct {
	combined      *CombinedGate
	closed        bool
	writableUntil time.Time // zero has no limit
}

// AddPart returns a new part, which is open. It does not change the gate before its first call.
func (c *CombinedGate) AddPart() *GatePart {
	c.mu.Lock()
	defer c.mu.Unlock()
	part := &GatePart{combined: c}
	c.parts[part] = struct{}{}
	return part
}

// Set closes the part, or opens it.
func (p *GatePart) Set(closed bool) {
	p.combined.updatePart(func() { p.closed = closed })
}

// AllowWritesUntil sets the end of the part.
func (p *GatePart) AllowWritesUntil(end time.Time) {
	p.combined.updatePart(func() { p.writableUntil = end })
}

// Remove removes the part from its gate. A gate without parts is open.
func (p *GatePart) Remove() {
	p.combined.updatePart(func() { delete(p.combined.parts, p) })
}

// updatePart changes a part and applies the resulting state to the gate. The lock is held during both, so that the gate
// always receives the states in the order of the changes.
func (c *CombinedGate) updatePart(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	// Without parts, the gate is open and writes do not end.
	closed, end, isFirst := false, time.Time{}, true
	for part := range c.parts {
		// With ClosedByAny, one closed part closes the gate. With closedByAll, one open part opens it. In both cases,
		// that part overrides the state which the parts before it gave.
		if isFirst || part.closed != c.isClosedByAll {
			closed = part.closed
		}
		// The earliest end counts, or the latest one with closedByAll.
		if isFirst || endsBefore(part.writableUntil, end) != c.isClosedByAll {
			end = part.writableUntil
		}
		isFirst = false
	}
	// The limit is set before the gate opens: no write may use the limit of an earlier state.
	c.gate.AllowWritesUntil(end)
	c.gate.Set(closed)
}

// endsBefore reports whether a permission ends before another one. The zero time never ends.
func endsBefore(a, b time.Time) bool { return !a.IsZero() && (b.IsZero() || a.Before(b)) }

// Gates are several gates that are always set to the same state.
type Gates []WriteGate

// Set closes all gates, or opens them.
func (g Gates) Set(closed bool) {
	for _, gate := range g {
		gate.Set(closed)
	}
}

// AllowWritesUntil forwards the time to all gates.
func (g Gates) AllowWritesUntil(end time.Time) {
	for _, gate := range g {
		gate.AllowWritesUntil(end)
	}
}
