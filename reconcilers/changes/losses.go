package changes

import (
	"context"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
)

// restoreWithBackoff restores lost memory: immediately at first, then with a growing delay, so that two operators that
// revert each other's writes do not keep the API server busy. Meanwhile, the process has the state in memory. While a
// change is handled, the writes of the change restore the memory instead.
func (p *pass) restoreWithBackoff(ctx context.Context, seen *observation, finalizerLost bool) (verdict, error) {
	now, memory := p.handling.Now(), p.memory
	// After a quiet time, the delays start again.
	if memory.losses == nil || memory.losses.areOver(now) {
		memory.losses = &losses{}
	}
	wait := memory.losses.remainingDelay(now)
	// The delay is over: write now, and log the loss.
	if wait == 0 {
		memory.losses.countLoss(now)
		p.result.MemoryLost = true
		logging.Warn(logf.FromContext(ctx), "Another client has removed or replaced the annotations or the finalizer "+
			"of the operator; continuing with the state in memory, and writing them again",
			"losses", memory.losses.count, "finalizer", finalizerLost, "next", memory.losses.delay.String())
	}
	_ = p.object.separateForeignMemory() // from now on, keep our memory apart from a copy; the round handles errors
	switch {
	// The writes of the open change include the lost memory. Only the finalizer is restored later.
	case seen.cause.Reason != cause.Noop:
		if finalizerLost { // handlers run without it meanwhile
			p.rewriteDelay = wait // handlers go on without it meanwhile
		}
		return continuePass, nil
	// It is too early to write: the pass is repeated after the delay.
	case wait > 0:
		p.rewriteDelay = wait
		if finalizerLost {
			return finishPass, nil
		}
		return continuePass, nil
	}
	return restartPass, p.writeLostMemory(ctx, seen, finalizerLost)
}

// writeLostMemory writes the lost memory and the lost finalizer in one patch.
func (p *pass) writeLostMemory(ctx context.Context, seen *observation, finalizerLost bool) error {
	patch := patching.Patch{Merge: map[string]any{}}
	if seen.memoryLost {
		if err := p.object.storeHandled(ctx, &patch, seen.cause.New); err != nil {
			return err
		}
		if err := p.object.bindMemory(&patch); err != nil {
			return err
		}
	}
	if finalizerLost {
		patch.Transforms = append(patch.Transforms, blockDeletion(p.handling.Finalizer))
	}
	if err := p.object.sendPatch(ctx, patch); err != nil || p.object.gone || p.object.released {
		return err
	}
	// If the schema drops the memory, the object would be restored again and again.
	if seen.memoryLost {
		return p.checkHasEssence()
	}
	return nil
}
