package sharding

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/bits"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
)

// Range is one of Count equal parts of the hash of uids. The zero value has all objects.
type Range struct{ Index, Count int }

// IsWhole reports whether the range has all objects.
func (r Range) IsWhole() bool { return r.Count == 0 }

// Contains reports whether an object belongs to the range.
func (r Range) Contains(uid types.UID) bool { return r.IsWhole() || IndexOf(uid, r.Count) == r.Index }

// String returns the range as "3/16", or "" for all objects.
func (r Range) String() string {
	if r.IsWhole() {
		return ""
	}
	return fmt.Sprintf("%d/%d", r.Index, r.Count)
}

// Selector returns the shardSelector with which an API server lists and watches the objects of the range only, or ""
// for all objects. The selector contains the lower limit and excludes the upper one.
func (r Range) Selector() string {
	if r.IsWhole() {
		return ""
	}
	return fmt.Sprintf("shardRange(object.metadata.uid, '%s', '%s')", lowerLimit(r.Index, r.Count),
		lowerLimit(r.Index+1, r.Count))
}

// IndexOf returns the index of the range to which an object belongs, if there are count ranges.
func IndexOf(uid types.UID, count int) int {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(uid)) // never fails
	// The upper half of the product is hash * count / 2^64, rounded down.
	index, _ := bits.Mul64(hash.Sum64(), uint64(count)) //nolint:gosec // the settings limit the count
	return int(index)                                   //nolint:gosec // less than count
}

// lowerLimit returns the smallest hash of a range, in the form of a selector. It is index * 2^64 / count, rounded up.
func lowerLimit(index, count int) string {
	if index == count {
		return "0x10000000000000000" // 2^64 does not fit into 64 bits
	}
	limit, rest := bits.Div64(uint64(index), 0, uint64(count)) //nolint:gosec // index is less than count
	if rest > 0 {
		limit++
	}
	return fmt.Sprintf("0x%016x", limit)
}

// rangeKey is the key of a context for the range.
type rangeKey struct{}

// WithRange returns a context of work for the objects of the range.
func WithRange(ctx context.Context, r Range) context.Context {
	if r.IsWhole() {
		return ctx
	}
	return context.WithValue(ctx, rangeKey{}, r)
}

// RangeOf returns the range of the objects that the context works for; the zero value if it is not for one range.
func RangeOf(ctx context.Context) Range {
	r, _ := ctx.Value(rangeKey{}).(Range)
	return r
}

// OwnRanges are the ranges that this process handles. A nil OwnRanges stands for all objects.
type OwnRanges struct {
	// Count is the number of ranges.
	Count int
	// Held has the indexes of the ranges of this process. Their gates may be closed for a while.
	Held *namespaces.LiveSet[int]

	running atomic.Pointer[running] // nil before the operator runs
}

// NewOwnRanges returns the ranges of a process that holds these of them.
func NewOwnRanges(count int, held ...int) *OwnRanges {
	return &OwnRanges{Count: count, Held: namespaces.NewLiveSet(held...)}
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
