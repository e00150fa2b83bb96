package shards

import (
	"sync/atomic"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/live"
)

// OwnRanges are the ranges that this process handles. A nil OwnRanges stands for all objects.
type OwnRanges struct {
	// Count is the number of ranges.
	Count int
	// Held has the indexes of the ranges of this process. Their gates may be closed for a while.
	Held *live.Set[int]

	running atomic.Pointer[running] // nil before the operator runs
}

// running is the operator that runs.
type running struct {
	load    func() (objects, unfinished int)
	exiting <-chan struct{}
}

// Current returns the ranges of this process, and a channel that is closed with the next change. Without OwnRanges, it
// is the range of all objects, and the channel is nil.
func (o *OwnRanges) Current() (ranges []Range, changed <-chan struct{}) {
	if o == nil {
		return []Range{{}}, nil
	}
	held, changed := o.Held.Current()
	for _, index := range held {
		ranges = append(ranges, Range{Index: index, Count: o.Count})
	}
	return ranges, changed
}

// BeginRun sets the source of [OwnRanges.Load], and the channel that is closed when the operator exits. It does nothing
// without OwnRanges.
func (o *OwnRanges) BeginRun(load func() (objects, unfinished int), exiting <-chan struct{}) {
	if o != nil {
		o.running.Store(&running{load, exiting})
	}
}

// Load returns the number of objects that this process has handled, and how many changes are unfinished. Both are zero
// before the operator runs.
func (o *OwnRanges) Load() (objects, unfinished int) {
	if r := o.running.Load(); r != nil {
		return r.load()
	}
	return 0, 0
}

// Exiting returns a channel that is closed when the operator exits; nil before it runs.
func (o *OwnRanges) Exiting() <-chan struct{} {
	if r := o.running.Load(); r != nil {
		return r.exiting
	}
	return nil
}
