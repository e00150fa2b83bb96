package owned

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/patching"
)

// A refused write is retried after firstSaveDelay, which doubles with each attempt up to maxSaveDelay. The API server
// may refuse it for as long as the owner exists: its annotations are full, or an admission webhook denies it.
const (
	firstSaveDelay = 5 * time.Second
	maxSaveDelay   = 5 * time.Minute
)

// saveEndedChildren writes how children have ended to the annotations of their owner, so that they are not created
// again after a restart. An error is logged and delays the next write, but the pass continues.
func (h *ChildHandling) saveEndedChildren(ctx context.Context, result *ChildResult) {
	unsaved, annotations := h.Children.Author.UnsavedRecords(result.Body)
	if unsaved == nil {
		return
	}
	uid := types.UID(patching.ObjectUID(result.Body))
	if wait := h.Children.saveBackoffOf(uid).notBefore.Sub(currentTime()); wait > 0 {
		result.retryWithin(wait)
		return
	}
	err := h.sendPatch(ctx, "", patching.Patch{Transforms: []patching.Transform{unsaved}}, result)
	delay := h.Children.noteSaved(uid, err == nil)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Failed to remember that children are done, so they are made again after a "+
			"restart if they are gone: let the operator write the annotations of their owner; retrying",
			"annotations", annotations, "after", delay.String())
		result.retryWithin(delay)
	}
}

// saveBackoffOf returns the current delay of an owner.
func (c *Children) saveBackoffOf(uid types.UID) saveBackoff {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.owners[uid]; known != nil {
		return known.saveBackoff
	}
	return saveBackoff{}
}

// noteSaved records the result of a write, and returns the delay of the next one.
func (c *Children) noteSaved(uid types.UID, isSaved bool) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.owners[uid]
	switch {
	// The owner was deleted during the write.
	case known == nil:
		return firstSaveDelay
	case isSaved:
		known.saveBackoff = saveBackoff{}
	default:
		delay := min(max(2*known.saveBackoff.delay, firstSaveDelay), maxSaveDelay)
		known.saveBackoff = saveBackoff{delay, currentTime().Add(delay)}
	}
	return known.saveBackoff.delay
}
