package peering

import (
	"slices"
	"sync"
	"time"
)

// CombinedGate derives the state of one gate from several parts.
type CombinedGate struct {
	mu    sync.Mutex
	gate  Gate
	byAll bool
	parts map[*GatePart]struct{}
}

// ClosedByAny returns a combined gate that is closed while any of its parts is closed. Writes end with the first part.
func ClosedByAny(gate Gate) *CombinedGate {
	return &CombinedGate{gate: gate, parts: map[*GatePart]struct{}{}}
}

// ClosedByAll returns a combined gate that is closed while all of its parts are closed. Writes end with the last part.
func ClosedByAll(gate Gate) *CombinedGate {
	return &CombinedGate{gate: gate, parts: map[*GatePart]struct{}{}, byAll: true}
}

// GatePart is one part of a combined gate.
type GatePart struct {
	combined *CombinedGate
	closed   bool
	end      time.Time
}

// Add returns a new part, which is open. It does not change the gate before its first call.
func (c *CombinedGate) Add() *GatePart {
	c.mu.Lock()
	defer c.mu.Unlock()
	part := &GatePart{combined: c}
	c.parts[part] = struct{}{}
	return part
}

// Set closes the part, or opens it.
func (p *GatePart) Set(closed bool) {
	p.combined.update(func() { p.closed = closed })
}

// AllowWritesUntil sets the end of the part.
func (p *GatePart) AllowWritesUntil(end time.Time) {
	p.combined.update(func() { p.end = end })
}

// Remove removes the part from its gate. A gate without parts is open.
func (p *GatePart) Remove() {
	p.combined.update(func() { delete(p.combined.parts, p) })
}

// update changes a part, and sets the gate.
func (c *CombinedGate) update(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	closed, ends := 0, make([]time.Time, 0, len(c.parts))
	for part := range c.parts {
		if ends = append(ends, part.end); part.closed {
			closed++
		}
	}
	var end time.Time
	if slices.SortFunc(ends, compareEnds); len(ends) > 0 {
		end = ends[0]
		if c.byAll {
			end = ends[len(ends)-1]
		}
	}
	c.gate.AllowWritesUntil(end)
	c.gate.Set(closed > 0 && (!c.byAll || closed == len(c.parts)))
}

// compareEnds orders ends of permissions. The zero time is the last one, as it means that there is no end.
func compareEnds(a, b time.Time) int {
	switch {
	case a.IsZero() == b.IsZero():
		return a.Compare(b)
	case a.IsZero():
		return 1
	default:
		return -1
	}
}

// Gates are several gates that are always in the same state.
type Gates []Gate

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
