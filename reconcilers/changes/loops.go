package changes

import (
	"context"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// detectOwnCause checks whether the update is exactly our own write. If another client has edited the object as well,
// the update is an ordinary one, and its handlers are called without a delay.
func (p *pass) detectOwnCause(c *cause.Cause) {
	// The hash differs if anything else has changed as well.
	own := p.memory.ownWrites
	if c.Reason == cause.Update && own.essenceHash != 0 && own.essenceHash == cause.HashEssence(c.New) {
		p.ownCalls = &ownCalls{}
		return
	}
	// The write must not match a later state by chance.
	own.essenceHash = 0
	own.guard.ExpireLoop(p.handling.Now())
	p.forgetOwnWrites()
}

// forgetOwnWrites frees the memory when nothing is tracked, so that [Memory.IsEmpty] can be true.
func (p *pass) forgetOwnWrites() {
	if own := p.memory.ownWrites; own != nil && own.essenceHash == 0 && own.guard.IsIdle() {
		p.memory.ownWrites = nil
	}
}

// holdLoops delays the handlers that have called themselves too often.
func (p *pass) holdLoops(selected []*adapters.HandlerChain, state *execution.State) {
	for _, h := range selected {
		until := p.memory.ownWrites.guard.DelayedUntil(h.Description.ID)
		if until.After(p.handling.Now()) {
			state.StateOf(h.Description.ID).DelayFirstAttempt(until)
		}
	}
}

// noteOwnCall compares the essences before and after a call that our own write has caused. It ignores retries: they are
// delayed anyway.
func (p *pass) noteOwnCall(r *runner, a *execution.Attempt, before map[string]any, then diffbase.Essence) {
	if a.Outcome.Aborted || a.Call.Retry > 0 {
		return
	}
	id := a.Call.Handler.ID
	p.ownCalls.calledHandlers = append(p.ownCalls.calledHandlers, id)
	// The essences of former states can be known already: building one is expensive.
	var err error
	if then == nil {
		if then, err = p.handling.Lens.New(before); err != nil {
			return // the next pass reports an object that cannot be read
		}
	}
	if r.essence == nil {
		if r.essence, err = p.handling.Lens.New(r.workingCopy); err != nil {
			return
		}
	}
	changes := diff.Compute(cause.EssenceValue(then), cause.EssenceValue(r.essence))
	if len(changes) == 0 {
		return
	}
	p.ownCalls.writingHandlers = append(p.ownCalls.writingHandlers, id)
	// The log names the fields that keep changing.
	for _, item := range changes {
		p.ownCalls.fields = append(p.ownCalls.fields, item.Path)
	}
}

// countLoop counts the calls of this pass, and logs a new loop.
func (p *pass) countLoop(ctx context.Context) {
	if len(p.ownCalls.calledHandlers) == 0 {
		return
	}
	delay, isNew := p.memory.ownWrites.guard.NoteCalls(p.ownCalls.calledHandlers, p.ownCalls.writingHandlers,
		p.handling.Now())
	if delay == 0 {
		return
	}
	p.result.LoopingHandlers = p.ownCalls.writingHandlers
	if isNew {
		kind.LogLoop(logf.FromContext(ctx), p.memory.ownWrites.guard.LoopMembers(), p.ownCalls.fields, delay)
	}
}

// noteOwnWrite remembers the essence after the write, if the changes of the handlers cause an update.
func (p *pass) noteOwnWrite(handled *outcomes) {
	left := uint64(0)
	if now := p.ownEssence(handled); now != nil {
		left = cause.HashEssence(now)
	}
	own := p.memory.ownWrites
	switch {
	case left != 0 && own == nil:
		p.memory.ownWrites = &ownWrites{essenceHash: left}
	case left != 0:
		own.essenceHash = left
	// A closed cause without an update ends the tracking.
	case own != nil && handled.canClose():
		own.essenceHash = 0
		p.forgetOwnWrites()
	}
}

// ownEssence returns the essence of the object after the write; nil if the handlers have not changed it.
func (p *pass) ownEssence(handled *outcomes) diffbase.Essence {
	c := handled.cause
	// A deletion does not lead to updates. Without relevant changes, the essence need not be built.
	if handled.workingCopy == nil || c.Deleting || p.handling.isAlike(c.Body(), handled.workingCopy, nil) {
		return nil
	}
	now, err := p.object.presentEssence()
	if err != nil || cause.EqualEssences(now, c.New) {
		return nil
	}
	return now
}
