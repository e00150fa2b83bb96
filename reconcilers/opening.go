package reconcilers

import "github.com/kopf-runtime/kopf-runtime/reconcilers/background"

// opening is the gate from one of its openings to the end of that. What serves in one of them may not have heard of its
// end yet when the gate is open again: nothing begins by what it knows, as others may have acted in between.
type opening struct {
	gate   *Gate
	number int // of the gate
}

var _ background.Gate = opening{}

// Open tells whether anything may begin.
func (o opening) Open() bool {
	if o.gate == nil {
		return true
	}
	o.gate.mu.Lock()
	defer o.gate.mu.Unlock()
	return o.open()
}

// open is Open for callers that hold the lock.
func (o opening) open() bool { return o.gate.open() && o.gate.number == o.number }

// Enter is that of the gate.
func (o opening) Enter() bool {
	if o.gate == nil {
		return true
	}
	o.gate.mu.Lock()
	defer o.gate.mu.Unlock()
	return o.open() && o.gate.begin()
}

// Leave is that of the gate, open or not.
func (o opening) Leave() { o.gate.Leave() }
