package changes

import (
	"context"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/loops"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// ownWrites is what the process remembers of an object that its own handlers have changed.
type ownWrites struct {
	left  uint64 // the hash of the essence as our last write has left it; zero if nothing follows from that
	guard loops.Guard
}

// ownCalls are the calls of one pass that our own former write has caused.
type ownCalls struct {
	called, wrote []string
	fields        []diff.Path // that they have changed
}

// detectOwnCause finds out whether the update is what our own write has left, and nothing else. An edit by another
// client is none of it, so its handlers are called at once.
func (p *pass) detectOwnCause(c *cause.Cause) {
	own := p.memory.ownWrites
	if c.Reason == cause.Update && own.left != 0 && own.left == cause.Hash(c.New) {
		p.own = &ownCalls{}
		return
	}
	own.left = 0
	own.guard.Expire(p.handling.Now())
	p.forgetOwnWrites()
}

func (p *pass) forgetOwnWrites() {
	if own := p.memory.ownWrites; own != nil && own.left == 0 && own.guard.Idle() {
		p.memory.ownWrites = nil
	}
}

// holdLoops delays the handlers that call themselves again and again.
func (p *pass) holdLoops(selected []*adapters.Handler, state *execution.State) {
	for _, h := range selected {
		until := p.memory.ownWrites.guard.Until(h.Description.ID)
		if until.After(p.handling.Now()) {
			state.Handler(h.Description.ID).Hold(until)
		}
	}
}

// noteOwnCall compares the essences before and after a call that our own write has caused. Retries have delays already.
func (p *pass) noteOwnCall(r *runner, a *execution.Attempt, before map[string]any, then diffbase.Essence) {
	if a.Outcome.Aborted || a.Call.Retry > 0 {
		return
	}
	id := a.Call.Handler.ID
	p.own.called = append(p.own.called, id)
	var err error
	if then == nil {
		if then, err = p.handling.Lens.New(before); err != nil {
			return // the next pass reports an object that cannot be read
		}
	}
	if r.essence == nil {
		if r.essence, err = p.handling.Lens.New(r.working); err != nil {
			return
		}
	}
	changes := diff.Compute(asValue(then), asValue(r.essence))
	if len(changes) == 0 {
		return
	}
	p.own.wrote = append(p.own.wrote, id)
	for _, item := range changes {
		p.own.fields = append(p.own.fields, item.Path)
	}
}

// countLoop takes account of the calls of this pass, and logs a loop when it is found.
func (p *pass) countLoop(ctx context.Context) {
	if len(p.own.called) == 0 {
		return
	}
	delay, isNew := p.memory.ownWrites.guard.Note(p.own.called, p.own.wrote, p.handling.Now())
	if delay == 0 {
		return
	}
	p.looping = p.own.wrote
	if isNew {
		loops.Log(logf.FromContext(ctx), p.memory.ownWrites.guard.Members(), p.own.fields, delay)
	}
}

// noteOwnWrite remembers what the changes of handlers have made of the object, if that is an update for them.
func (p *pass) noteOwnWrite(handled *outcomes) {
	left := uint64(0)
	if now := p.ownEssence(handled); now != nil {
		left = cause.Hash(now)
	}
	own := p.memory.ownWrites
	switch {
	case left != 0 && own == nil:
		p.memory.ownWrites = &ownWrites{left: left}
	case left != 0:
		own.left = left
	case own != nil && handled.done():
		own.left = 0
		p.forgetOwnWrites()
	}
}

// ownEssence is that of the object as the write has left it; nil if the handlers have changed nothing of it.
func (p *pass) ownEssence(handled *outcomes) diffbase.Essence {
	c := handled.cause
	if handled.working == nil || c.Deleting || p.handling.alike(c.Body(), handled.working, nil) {
		return nil
	}
	now, err := p.object.presentEssence()
	if err != nil || diff.Equal(asValue(now), asValue(c.New)) {
		return nil
	}
	return now
}
