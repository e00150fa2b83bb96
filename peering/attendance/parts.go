package attendance

import (
	"sync"
	"time"

	"github.com/kopf-runtime/kopf-runtime/peering"
)

// Gate is that of one namespace, with what runs behind it: see [peering.Member].
type Gate interface {
	peering.Gate
	Busy() int
	Idle() <-chan struct{}
}

// Part has the peering of each namespace close the gate of this namespace, instead of that of the operator. The
// operator's is closed when those of all namespaces are: what is outside of namespaces is not handled then either. It
// is called before Run.
func (a *Attendance) Part(gates func(namespace string) Gate) {
	a.parts = &parts{gates: gates, whole: a.seats.Take(), all: map[string]*part{}}
}

// parts are the gates of all namespaces.
type parts struct {
	gates func(namespace string) Gate
	whole *peering.Seat

	mu  sync.Mutex
	all map[string]*part
}

// part is the gate of one namespace.
type part struct {
	gate   Gate
	seats  *peering.Seats // of the peering objects in the namespace
	count  int            // of these
	parts  *parts
	closed bool
	end    time.Time
}

// of takes the part of a namespace for one more peering object.
func (p *parts) of(namespace string) *part {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.all[namespace]
	if one == nil {
		one = &part{gate: p.gates(namespace), parts: p}
		one.seats = peering.NewSeats(one)
		p.all[namespace] = one
	}
	one.count++
	return one
}

// leave is for a peering object that is not attended any more. Nil does nothing.
func (p *parts) leave(namespace string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.all[namespace]
	if one.count--; one.count == 0 {
		delete(p.all, namespace)
		p.sum()
	}
}

// Set closes the gate of the namespace, or opens it.
func (o *part) Set(closed bool) {
	o.parts.mu.Lock()
	defer o.parts.mu.Unlock()
	o.closed = closed
	o.gate.Set(closed)
	o.parts.sum()
}

// AllowWritesUntil limits the permission to write in the namespace.
func (o *part) AllowWritesUntil(end time.Time) {
	o.parts.mu.Lock()
	defer o.parts.mu.Unlock()
	o.end = end
	o.gate.AllowWritesUntil(end)
	o.parts.sum()
}

// sum has the operator pause if all namespaces do. Its permission to write is that of the last of them. The lock is
// held.
func (p *parts) sum() {
	closed, limited, end := len(p.all) > 0, len(p.all) > 0, time.Time{}
	for _, one := range p.all {
		closed = closed && one.closed
		if limited = limited && !one.end.IsZero(); one.end.After(end) {
			end = one.end
		}
	}
	if !limited {
		end = time.Time{}
	}
	p.whole.AllowWritesUntil(end)
	p.whole.Set(closed)
}
