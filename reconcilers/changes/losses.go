package changes

import (
	"context"
	"errors"
	"fmt"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// longestRewrite is the longest delay before lost memory is written again.
const longestRewrite = 10 * time.Minute

var errNotKept = errors.New(
	"the API server took the write, but did not keep what was to be remembered: if it is in the status, the CRD " +
		"must allow that field, such as with x-kubernetes-preserve-unknown-fields",
)

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
			"of the operator; going on from what is in memory, and writing them again", "losses", memory.losses.count,
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
	return p.checkHandledKept(patch.Merge)
}

// checkKept tells whether the object remembers what it was given to. A field that a CRD does not know is dropped
// without a word, and the object would be new forever, its handlers called again and again. The error delays the object
// until the write lasts, and handlers wait for that.
func (p *pass) checkKept(handled *outcomes, patch map[string]any) error {
	switch {
	case p.object.gone || p.object.released:
		return nil
	case handled.state.Done():
		return p.checkHandledKept(patch)
	case holdsAll(p.object.body, patch):
		return nil
	}
	for _, h := range handled.state.Handlers() {
		if !h.Recorded() {
			continue
		}
		wanted, err := p.handling.Progress.Fetch(patch, h.ID)
		if err != nil || wanted == nil {
			continue
		}
		if record, err := p.handling.Progress.Fetch(p.object.body, h.ID); err == nil && record == nil {
			return fmt.Errorf("progress of handler %q: %w", h.ID, errNotKept)
		}
	}
	return nil
}

// holdsAll reports whether the object has all values that a merge-patch sets, so that no storage need be asked.
func holdsAll(body, patch map[string]any) bool {
	for key, value := range patch {
		held, found := body[key]
		if inner, isMapping := value.(map[string]any); isMapping {
			into, _ := held.(map[string]any)
			found = holdsAll(into, inner)
		}
		if !found && value != nil {
			return false
		}
	}
	return true
}

func (p *pass) checkHandledKept(patch map[string]any) error {
	isIn := func(body map[string]any) bool {
		essence, err := p.handling.Lens.Diffbase.Fetch(body)
		return err != nil || essence != nil
	}
	if !holdsAll(p.object.body, patch) && isIn(patch) && !isIn(p.object.body) {
		return fmt.Errorf("last-handled configuration: %w", errNotKept)
	}
	return nil
}
