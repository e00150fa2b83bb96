package owned

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// A write that is refused waits for firstSaveDelay, and then for twice as long each time. The API server may refuse it
// for as long as the owner exists: its annotations are full, or an admission webhook denies it.
const (
	firstSaveDelay = 5 * time.Second
	maxSaveDelay   = 5 * time.Minute
)

// saving is when the next write may begin that remembers how children have ended. The zero value is at once.
type saving struct {
	delay time.Duration
	after time.Time
}

// remember writes how the children have ended.
func (h *Handling) remember(ctx context.Context, result *Result) {
	unsaved, annotations := h.Children.Author.Unsaved(result.Body)
	if unsaved == nil {
		return
	}
	uid := types.UID(patching.UIDOf(result.Body))
	if wait := h.Children.savingOf(uid).after.Sub(now()); wait > 0 {
		result.postpone(wait)
		return
	}
	err := h.send(ctx, "", patching.Patch{Transforms: []patching.Transform{unsaved}}, result)
	delay := h.Children.noteSaved(uid, err == nil)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Failed to remember that children are done, so they are made again after a "+
			"restart if they are gone: let the operator write the annotations of their owner; retrying",
			"annotations", annotations, "after", delay.String())
		result.postpone(delay)
	}
}

func (c *Children) savingOf(uid types.UID) saving {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.owners[uid]; known != nil {
		return known.saving
	}
	return saving{}
}

// noteSaved notes a write, and returns how long the next one waits.
func (c *Children) noteSaved(uid types.UID, isSaved bool) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.owners[uid]
	switch {
	case known == nil:
		return firstSaveDelay
	case isSaved:
		known.saving = saving{}
	default:
		delay := min(max(2*known.saving.delay, firstSaveDelay), maxSaveDelay)
		known.saving = saving{delay, now().Add(delay)}
	}
	return known.saving.delay
}
