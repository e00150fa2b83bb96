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

	load atomic.Pointer[func() (objects, unfinished int)]
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

// SetLoad sets the source of [OwnRanges.Load]. It does nothing without OwnRanges.
func (o *OwnRanges) SetLoad(load func() (objects, unfinished int)) {
	if o != nil {
		o.load.Store(&load)
	}
}

// Load returns the number of objects that this process has handled, and how many changes are unfinished. Both are zero
// before the operator runs.
func (o *OwnRanges) Load() (objects, unfinished int) {
	if load := o.load.Load(); load != nil {
		return (*load)()
	}
	return 0, 0
}
