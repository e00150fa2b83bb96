package queue

import "time"

// Patience is how long requests wait for a place, with none of them getting one, before that is told.
const Patience = 10 * time.Second

// Stall is that requests wait because all places for them are taken, and nobody leaves.
type Stall struct {
	// Deletions is true if it is those that wait, and false for all the rest.
	Deletions bool
	// Waiting is how many do; none when it is over.
	Waiting int
	// Since is when the last place was taken.
	Since time.Time
}

// stall is what is known of one side.
type stall struct {
	alarm  *time.Timer // while it is full, and somebody waits
	number int         // of the alarm
	since  time.Time
	told   bool
}

// observe is after every change. The lock is held.
func (p *Places) observe(s side) {
	known := &p.stalls[s]
	full := p.waiting[s] > 0 && !p.room(s)
	switch {
	case full && known.alarm == nil:
		known.number++
		number := known.number
		known.since = time.Now()
		known.alarm = time.AfterFunc(Patience, func() { p.stalled(s, number) })
	case !full && known.alarm != nil:
		known.alarm.Stop()
		known.alarm = nil
	}
	if known.told && p.waiting[s] == 0 {
		known.told = false
		go p.tell(Stall{Deletions: s == deletions})
	}
}

// stalled is when the alarm goes off.
func (p *Places) stalled(s side, number int) {
	p.mu.Lock()
	known := &p.stalls[s]
	now := known.alarm != nil && known.number == number && !known.told // a place may have been left at the last moment
	known.told = known.told || now
	found := Stall{Deletions: s == deletions, Waiting: p.waiting[s], Since: known.since}
	p.mu.Unlock()
	if now {
		p.tell(found)
	}
}

func (p *Places) tell(found Stall) {
	if p.observer.Stalled != nil {
		p.observer.Stalled(found)
	}
}
