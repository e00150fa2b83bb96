package peering

import (
	"sync"
	"time"
)

// Seats make one gate of several: it is open while all of its seats are.
type Seats struct {
	mu   sync.Mutex
	gate Gate
	all  map[*Seat]struct{}
}

// NewSeats are the seats of a gate. Without any, it is left alone.
func NewSeats(gate Gate) *Seats { return &Seats{gate: gate, all: map[*Seat]struct{}{}} }

// Seat is the gate of one who has a say.
type Seat struct {
	of     *Seats
	closed bool
	end    time.Time
}

// Take gives a seat that is open.
func (s *Seats) Take() *Seat {
	s.mu.Lock()
	defer s.mu.Unlock()
	seat := &Seat{of: s}
	s.all[seat] = struct{}{}
	return seat
}

// Set closes the seat, or opens it again.
func (s *Seat) Set(closed bool) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.closed = closed
	s.of.tell()
}

// AllowWritesUntil has the gate take the earliest of all seats.
func (s *Seat) AllowWritesUntil(end time.Time) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.end = end
	s.of.tell()
}

// Leave gives the seat back: it has no say any more.
func (s *Seat) Leave() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	delete(s.of.all, s)
	s.of.tell()
}

func (s *Seats) tell() {
	closed, end := false, time.Time{}
	for seat := range s.all {
		closed = closed || seat.closed
		if !seat.end.IsZero() && (end.IsZero() || seat.end.Before(end)) {
			end = seat.end
		}
	}
	s.gate.AllowWritesUntil(end)
	s.gate.Set(closed)
}
