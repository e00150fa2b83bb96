package server

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// class is how urgent a review is. A higher class goes first, and a part of the memory is reserved for it.
type class int

const (
	ordinary class = iota
	deletion       // nothing goes away while deletions wait
	small          // such reviews are many, and cost little
	classes
)

const (
	// smallBody is the size of most bodies, at most.
	smallBody = 64 << 10
	// smallValues is what the values of most reviews take, at most.
	smallValues = 1 << 20
	// patienceOfPlace is how long a review waits until others have ended.
	patienceOfPlace = time.Second
	// grace is how long a body may take before it can be given up for another one.
	grace = time.Second
)

var (
	// errFull is the error of a review for which there is no memory now.
	errFull = errors.New("too many large admission reviews at once")
	// errSlow is the error of a body that was given up for another one.
	errSlow = errors.New("the admission review came too slowly, and its memory was needed")
)

// share is how much of the limit the reviews of this class and all lower ones may use together.
func (c class) share(limit int64) int64 {
	switch c {
	case ordinary:
		return limit / 3 * 2
	case deletion:
		return limit / 12 * 11
	default:
		return limit
	}
}

// pool is the memory of all reviews together. Bodies are counted as they come, whoever sends them. Values are counted
// by their estimated size, from when the whole body is there until the review is answered. So a slow client holds
// nothing but what it has sent, and that only for as long as nobody else needs it.
type pool struct {
	limit int64 // of values; bodies have two thirds of it in addition

	mu             sync.Mutex
	bodies, values int64
	reading        map[*intake]bool
	waiting        [classes][]*place
}

// place is the permission to decode and answer one review.
type place struct {
	pool    *pool
	class   class
	values  int64
	granted chan struct{}
}

// add counts further bytes of a body.
func (p *pool) add(in *intake, bytes int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case in.givenUp:
		return errSlow
	case bytes == 0:
		return nil // it may be the end
	}
	p.reading[in] = true
	for p.bodies+bytes > in.class.share(p.limit/3*2) {
		if !p.giveUpSlowest(in) {
			return errFull
		}
	}
	in.held += bytes
	p.bodies += bytes
	return nil
}

// giveUpSlowest ends the reading of the body that has taken longest, if that is long enough.
func (p *pool) giveUpSlowest(but *intake) bool {
	var slowest *intake
	for in := range p.reading {
		slow := in != but && in.held > 0 && time.Since(in.began) > grace
		if slow && (slowest == nil || in.began.Before(slowest.began)) {
			slowest = in
		}
	}
	if slowest == nil {
		return false
	}
	slowest.givenUp = true
	p.drop(slowest)
	slowest.interrupt()
	return true
}

// complete keeps a body from being given up.
func (p *pool) complete(in *intake) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.reading, in)
	if in.givenUp {
		return errSlow
	}
	return nil
}

// release is for a body that is not needed any more.
func (p *pool) release(in *intake) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(in)
}

func (p *pool) drop(in *intake) {
	delete(p.reading, in)
	p.bodies -= in.held
	in.held = 0
}

// enter waits for the memory of values. The place must be left.
func (p *pool) enter(ctx context.Context, c class, values int64) (*place, error) {
	if values <= smallValues {
		c = small
	} else if c == small {
		c = ordinary
	}
	// What a review takes beyond the share of its class is not counted: the rest stays reserved for other classes.
	one := &place{pool: p, class: c, values: min(values, c.share(p.limit)), granted: make(chan struct{})}
	p.mu.Lock()
	p.waiting[c] = append(p.waiting[c], one)
	p.grant()
	p.mu.Unlock()
	select {
	case <-one.granted:
		return one, nil
	default:
	}
	timer := time.NewTimer(patienceOfPlace)
	defer timer.Stop()
	var err error
	select {
	case <-one.granted:
		return one, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
		err = errFull
	}
	one.leave()
	return nil, err
}

// leave gives the memory to others, or ends the wait for it.
func (o *place) leave() {
	p := o.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.Index(p.waiting[o.class], o); at >= 0 {
		p.waiting[o.class] = slices.Delete(p.waiting[o.class], at, at+1)
	} else {
		p.values -= o.values
	}
	p.grant()
}

// grant lets reviews in: those of higher classes first, and those that came first.
func (p *pool) grant() {
	for c := small; c >= ordinary; c-- {
		for len(p.waiting[c]) > 0 {
			first := p.waiting[c][0]
			if p.values+first.values > c.share(p.limit) {
				return
			}
			p.waiting[c] = slices.Delete(p.waiting[c], 0, 1)
			p.values += first.values
			close(first.granted)
		}
	}
}
