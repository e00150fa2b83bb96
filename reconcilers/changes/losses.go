package changes

import (
	"context"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// longestRewrite is the longest delay before lost memory is written again.
const longestRewrite = 10 * time.Minute

// openRecords are the records of an open cause as the object has them by our last write. They count for the Handling
// that wrote them: after a pause, another operator may have removed them for a reason.
type openRecords struct {
	of   *Handling
	byID map[string]progress.Record
}

// losses space the writes of our memory on one object while another client removes it again and again.
type losses struct {
	count int
	delay time.Duration // after the last write
	until time.Time     // when it may be written again
}

func (l *losses) wait(now time.Time) time.Duration { return max(0, l.until.Sub(now)) }

// grow counts a loss, and doubles the delay before the next write.
func (l *losses) grow(now time.Time) {
	l.count++
	l.delay = min(max(time.Second, 2*l.delay), longestRewrite)
	l.until = now.Add(l.delay)
}

// areOver reports whether our memory has lasted for so long that the next loss is a new one.
func (l *losses) areOver(now time.Time) bool { return now.Sub(l.until) > max(time.Minute, l.delay) }

// writeAgainLater writes the lost memory again, at first at once, then with a growing delay, so that two operators that
// undo each other's writes do not keep the API server busy. The process knows meanwhile what was handled. While a
// change is handled, its own writes restore the memory.
func (p *pass) writeAgainLater(ctx context.Context, seen *observation, finalizerLost bool) (verdict, error) {
	now, memory := p.handling.Now(), p.memory
	if memory.losses == nil || memory.losses.areOver(now) {
		memory.losses = &losses{}
	}
	wait := memory.losses.wait(now)
	if wait == 0 {
		memory.losses.grow(now)
		p.lost = true
		logging.Warn(logf.FromContext(ctx), "Another client has removed or replaced the annotations or the finalizer "+
			"of the operator; continuing with the state in memory, and writing them again", "losses", memory.losses.count,
			"finalizer", finalizerLost, "next", memory.losses.delay.String())
	}
	_ = p.object.separateForeignMemory() // memory that a copy has replaced is kept apart now; a round sees to errors
	switch {
	case seen.cause.Reason != cause.Noop:
		if finalizerLost {
			p.rewrite = wait // handlers go on without it meanwhile
		}
		return goOn, nil
	case wait > 0:
		p.rewrite = wait
		if finalizerLost {
			return stop, nil
		}
		return goOn, nil
	}
	return startOver, p.writeLost(ctx, seen, finalizerLost)
}

func (p *pass) writeLost(ctx context.Context, seen *observation, finalizerLost bool) error {
	patch := patching.Patch{Merge: map[string]any{}}
	if seen.lost {
		if err := p.object.storeHandled(ctx, &patch, seen.cause.New); err != nil {
			return err
		}
		if err := p.object.bind(&patch); err != nil {
			return err
		}
	}
	if finalizerLost {
		patch.Transforms = append(patch.Transforms, blockDeletion(p.handling.Finalizer))
	}
	if err := p.object.send(ctx, patch); err != nil || p.object.gone || p.object.released {
		return err
	}
	if seen.lost {
		return p.checkHasEssence()
	}
	return nil
}
