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
	ordinaryClass class = iota
	deletionClass       // an object cannot disappear while its deletion waits
	smallClass          // such reviews are frequent and need little memory
	// classCount is the number of classes.
	classCount
)

const (
	// maxSmallBodyBytes is the largest size, in bytes, of most bodies.
	maxSmallBodyBytes = 64 << 10
	// maxSmallValueBytes is the largest size, in bytes, of the values of most reviews.
	maxSmallValueBytes = 1 << 20
	// slotTimeout is how long a review waits for other reviews to end. API servers repeat rejected requests.
	slotTimeout = time.Second
	// bodyGracePeriod is how long a client may take to send a body before the body can be dropped in favor of another
	// one.
	bodyGracePeriod = time.Second
)

var (
	// errOutOfMemory is the error of a review for which there is no memory at present.
	errOutOfMemory = errors.New("too many large admission reviews at once")
	// errSlowBody is the error of a body that was dropped in favor of another one.
	errSlowBody = errors.New("the admission review came too slowly, and its memory was needed")
)

// memoryShare returns how much of the limit the reviews of this class and all lower ones may use together. Ordinary
// reviews get two thirds, and small reviews have a twelfth that no other class uses.
func (c class) memoryShare(limit int64) int64 {
	switch c {
	case ordinaryClass:
		return limit / 3 * 2
	case deletionClass:
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
	memoryLimit int64 // of values; bodies have two thirds of it in addition

	mu                    sync.Mutex
	bodyBytes, valueBytes int64
	// incompleteBodies contains the bodies that are not complete. Only these can be dropped.
	incompleteBodies map[*requestBody]bool
	// waitingSlots contains the reviews without memory, by class, in the order of their arrival.
	waitingSlots [classCount][]*reviewSlot
}

// reviewSlot is the permission to decode and answer one review. The channel is closed when it is granted.
type reviewSlot struct {
	pool       *pool
	class      class
	valueBytes int64
	granted    chan struct{}
}

// addBytes counts further bytes of a body. If there is no memory for them, it drops slow bodies.
func (p *pool) addBytes(in *requestBody, bytes int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case in.isDropped:
		return errSlowBody
	case bytes == 0:
		return nil // this may be the end of the body
	}
	p.incompleteBodies[in] = true
	for p.bodyBytes+bytes > in.class.memoryShare(p.memoryLimit/3*2) {
		if !p.dropSlowestBody(in) {
			return errOutOfMemory
		}
	}
	in.countedBytes += bytes
	p.bodyBytes += bytes
	return nil
}

// dropSlowestBody drops the incomplete body that has taken longest, if that exceeds the grace period. It returns false
// if there is no such body.
func (p *pool) dropSlowestBody(but *requestBody) bool {
	var slowest *requestBody
	for in := range p.incompleteBodies {
		slow := in != but && in.countedBytes > 0 && time.Since(in.startTime) > bodyGracePeriod
		if slow && (slowest == nil || in.startTime.Before(slowest.startTime)) {
			slowest = in
		}
	}
	if slowest == nil {
		return false
	}
	slowest.isDropped = true
	p.dropBody(slowest)
	// The reader is blocked in a read of its connection.
	slowest.interrupt()
	return true
}

// completeBody protects a complete body from being dropped. It returns an error if that has already happened.
func (p *pool) completeBody(in *requestBody) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.incompleteBodies, in)
	if in.isDropped {
		return errSlowBody
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
	delete(p.incompleteBodies, in)
	p.bodyBytes -= in.countedBytes
	in.countedBytes = 0
}

// acquireSlot waits for the memory of values. The caller must release the returned permission. Requests that wait too
// long get errOutOfMemory, and API servers retry them.
func (p *pool) acquireSlot(ctx context.Context, c class, values int64) (*reviewSlot, error) {
	// The class was chosen by the body. The estimated size of the values decides whether the review is small.
	if values <= maxSmallValueBytes {
		c = smallClass
	} else if c == smallClass {
		c = ordinaryClass
	}
	// A review that exceeds the share of its class is only counted with that share: it can still run, alone in its
	// class, and the rest of the memory stays reserved for other classes.
	one := &reviewSlot{pool: p, class: c, valueBytes: min(values, c.memoryShare(p.memoryLimit)),
		granted: make(chan struct{})}
	p.mu.Lock()
	p.waitingSlots[c] = append(p.waitingSlots[c], one)
	p.grantWaiting()
	p.mu.Unlock()
	// Usually there is memory at once, so this path needs no timer.
	select {
	case <-one.granted:
		return one, nil
	default:
	}
	timer := time.NewTimer(slotTimeout)
	defer timer.Stop()
	var err error
	select {
	case <-one.granted:
		return one, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
		err = errOutOfMemory
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
	if at := slices.Index(p.waitingSlots[o.class], o); at >= 0 {
		p.waitingSlots[o.class] = slices.Delete(p.waitingSlots[o.class], at, at+1)
	} else {
		p.valueBytes -= o.valueBytes
	}
	p.grantWaiting()
}

// grantWaiting admits waiting reviews: higher classes first, and in the order of arrival. If the first review of a
// class does not fit, lower classes also wait, so that they do not take the memory that it needs. The caller holds the
// lock.
func (p *pool) grantWaiting() {
	for c := smallClass; c >= ordinaryClass; c-- {
		for len(p.waitingSlots[c]) > 0 {
			first := p.waitingSlots[c][0]
			if p.valueBytes+first.valueBytes > c.memoryShare(p.memoryLimit) {
				return
			}
			p.waitingSlots[c] = slices.Delete(p.waitingSlots[c], 0, 1)
			p.valueBytes += first.valueBytes
			close(first.granted)
		}
	}
}
