package server

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// class is the priority of a review. Higher classes go first, and have a reserved share of the memory.
type class int

const (
	ordinary class = iota
	deletion       // an object cannot disappear while its deletion waits
	small          // such reviews are frequent and need little memory
	// classes is the number of classes.
	classes
)

const (
	// smallBody is the largest size, in bytes, of most bodies.
	smallBody = 64 << 10
	// smallValues is the largest size, in bytes, of the values of most reviews.
	smallValues = 1 << 20
	// patienceOfPlace is how long a review waits for other reviews to end. API servers repeat rejected requests.
	patienceOfPlace = time.Second
	// grace is how long a client may take to send a body before the body can be dropped in favor of another one.
	grace = time.Second
)

var (
	// errFull is the error of a review for which there is no memory at present.
	errFull = errors.New("too many large admission reviews at once")
	// errSlow is the error of a body that was dropped in favor of another one.
	errSlow = errors.New("the admission review came too slowly, and its memory was needed")
)

// memoryShare returns how much of the limit the reviews of this class and all lower ones may use together. Ordinary reviews
// get two thirds, and small reviews have a twelfth that no other class uses.
func (c class) memoryShare(limit int64) int64 {
	switch c {
	case ordinary:
		return limit / 3 * 2
	case deletion:
		return limit / 12 * 11
	default:
		return limit
	}
}

// pool limits the memory of all reviews together. Bodies are counted while they arrive. Values are counted by their
// estimated size, from the end of the body until the review is answered. So a slow client only holds the memory of the
// bytes that it has sent, and loses even that if another request needs it.
//
// Large reviews cannot block the others: ordinary reviews use at most two thirds of the memory, deletions and ordinary
// ones eleven twelfths.
type pool struct {
	limit int64 // of values; bodies have two thirds of it in addition

	mu             sync.Mutex
	bodies, values int64
	// reading contains the bodies that are not complete. Only these can be dropped.
	reading map[*requestBody]bool
	// waiting contains the reviews without memory, by class, in the order of their arrival.
	waiting [classes][]*reviewSlot
}

// reviewSlot is the permission to decode and answer one review. The channel is closed when it is granted.
type reviewSlot struct {
	pool    *pool
	class   class
	values  int64
	granted chan struct{}
}

// addBytes counts further bytes of a body. If there is no memory for them, it drops slow bodies.
func (p *pool) addBytes(in *requestBody, bytes int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case in.givenUp:
		return errSlow
	case bytes == 0:
		return nil // this may be the end of the body
	}
	p.reading[in] = true
	for p.bodies+bytes > in.class.memoryShare(p.limit/3*2) {
		if !p.dropSlowestBody(in) {
			return errFull
		}
	}
	in.held += bytes
	p.bodies += bytes
	return nil
}

// dropSlowestBody drops the incomplete body that has taken longest, if that exceeds the grace period. It returns false if
// there is no such body.
func (p *pool) dropSlowestBody(but *requestBody) bool {
	var slowest *requestBody
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
	p.dropBody(slowest)
	// The reader is blocked in a read of its connection.
	slowest.interrupt()
	return true
}

// completeBody protects a complete body from being dropped. It returns an error if that has already happened.
func (p *pool) completeBody(in *requestBody) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.reading, in)
	if in.givenUp {
		return errSlow
	}
	return nil
}

// releaseBody frees the memory of a body.
func (p *pool) releaseBody(in *requestBody) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropBody(in)
}

// dropBody frees the memory of a body. It can be called several times. The caller holds the lock.
func (p *pool) dropBody(in *requestBody) {
	delete(p.reading, in)
	p.bodies -= in.held
	in.held = 0
}

// acquireSlot waits for the memory of values. The caller must release the returned permission. Requests that wait too long
// get errFull, and API servers retry them.
func (p *pool) acquireSlot(ctx context.Context, c class, values int64) (*reviewSlot, error) {
	// The class was chosen by the body. The estimated size of the values decides whether the review is small.
	if values <= smallValues {
		c = small
	} else if c == small {
		c = ordinary
	}
	// A review that exceeds the share of its class is only counted with that share: it can still run, alone in its
	// class, and the rest of the memory stays reserved for other classes.
	one := &reviewSlot{pool: p, class: c, values: min(values, c.memoryShare(p.limit)), granted: make(chan struct{})}
	p.mu.Lock()
	p.waiting[c] = append(p.waiting[c], one)
	p.grantWaiting()
	p.mu.Unlock()
	// Usually there is memory at once, so this path needs no timer.
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
	// The permission may have been granted at the same moment, which this handles, too.
	one.releaseSlot()
	return nil, err
}

// releaseSlot frees the memory for other reviews, or ends the wait for it.
func (o *reviewSlot) releaseSlot() {
	p := o.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.Index(p.waiting[o.class], o); at >= 0 {
		p.waiting[o.class] = slices.Delete(p.waiting[o.class], at, at+1)
	} else {
		p.values -= o.values
	}
	p.grantWaiting()
}

// grantWaiting admits waiting reviews: higher classes first, and in the order of arrival. If the first review of a class does
// not fit, lower classes also wait, so that they do not take the memory that it needs. The caller holds the lock.
func (p *pool) grantWaiting() {
	for c := small; c >= ordinary; c-- {
		for len(p.waiting[c]) > 0 {
			first := p.waiting[c][0]
			if p.values+first.values > c.memoryShare(p.limit) {
				return
			}
			p.waiting[c] = slices.Delete(p.waiting[c], 0, 1)
			p.values += first.values
			close(first.granted)
		}
	}
}
