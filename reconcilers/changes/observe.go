package changes

import (
	"context"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// observe compares the object with what is remembered of it, and so finds the cause. All memory is read here, ahead of
// any write: an object whose memory is malformed is not touched.
func (p *pass) observe(ctx context.Context) (verdict, error) {
	p.state, p.working = nil, nil
	if err := p.bearable(p.disown()); err != nil {
		return stop, &BlockedError{Err: err}
	}
	now, then, err := p.essences()
	if err == nil {
		p.former, err = execution.Restore(p.read, p.owned(), nil, "", p.now())
	}
	if err == nil {
		err = p.believe()
	}
	if err != nil {
		return stop, &BlockedError{Err: err}
	}
	p.missing(ctx)
	p.cause = cause.Detect(cause.Observation{
		Body: p.body, Finalizer: p.Finalizer, Old: then, New: now, Veiled: p.veiled, Initial: p.memory.Initial,
	})
	return goOn, nil
}

// essences are the present and the remembered one, and the interim one on the way. What cannot be read is nil if the
// object is being deleted.
func (p *pass) essences() (now, then diffbase.Essence, err error) {
	if now, err = p.Lens.New(p.reading); p.blocks(err) {
		return nil, nil, err
	}
	p.ignored(err)
	if p.stored, err = p.Lens.Old(p.reading, p.Lens.Diffbase); p.blocks(err) {
		return nil, nil, err
	}
	p.ignored(err)
	interim, err := p.Lens.Old(p.reading, p.Interim)
	if p.blocks(err) {
		return nil, nil, err
	}
	p.ignored(err)
	p.interim, _ = p.Lens.Redaction.Recall(p.body, interim, now)
	then, p.veiled = p.Lens.Redaction.Recall(p.body, p.stored, now)
	return now, then, nil
}

// blocks tells whether malformed memory ends the pass: nothing may hold up a deletion for ever.
func (p *pass) blocks(err error) bool { return err != nil && !patching.BeingDeleted(p.body) }

// bearable is the error, unless the object is being deleted: then it is told, and nothing else.
func (p *pass) bearable(err error) error {
	if p.blocks(err) {
		return err
	}
	p.ignored(err)
	return nil
}

// ignored tells of an error that holds up no deletion, once: there may be any number of passes.
func (p *pass) ignored(err error) {
	if err == nil {
		return
	}
	if text := err.Error(); !p.memory.told[text] {
		p.log.Error(
			err, "The object is being deleted; what cannot be done with its memory is ignored", panics.Stack(err)...,
		)
		p.memory.tell(text)
	}
}

// weigh asks whether anybody wants the object. With the operator on its way out, nothing is begun any more.
func (p *pass) weigh(ctx context.Context) (verdict, error) {
	if ctx.Err() != nil {
		p.exiting = true
		return stop, nil
	}
	interest, err := handlers.InterestIn(ctx, p.Handlers, p.cause)
	p.interest = interest
	p.interest.Finalizer = p.interest.Finalizer || p.holds
	return goOn, filtering(err)
}

// attend starts and stops what runs in the background, which may hold the object, too.
func (p *pass) attend(ctx context.Context) (verdict, error) {
	if p.Background == nil {
		return goOn, nil
	}
	var err error
	if p.holds, p.busy, err = p.Background.Attend(ctx, p.cause); err != nil {
		return stop, filtering(err)
	}
	return goOn, nil
}

// hold adds the finalizer before any handler is called, or removes one that nobody needs.
func (p *pass) hold(ctx context.Context) (verdict, error) {
	held := patching.HasFinalizer(p.body, p.Finalizer)
	switch {
	case p.interest.Finalizer && !held && !p.cause.Deleting:
		return startOver, p.transform(ctx, p.block)
	case !p.interest.Finalizer && held && p.cause.Deleting:
		return stop, p.leave(ctx)
	case !p.interest.Finalizer && held:
		return startOver, p.transform(ctx, patching.AllowDeletion(p.Finalizer))
	default:
		return goOn, nil
	}
}

// block adds the finalizer, but not to an object whose deletion was quicker: that would be refused.
func (p *pass) block(body map[string]any) error {
	if patching.BeingDeleted(body) {
		return nil
	}
	return patching.BlockDeletion(p.Finalizer)(body)
}

func (p *pass) transform(ctx context.Context, transform patching.Transform) error {
	return p.send(ctx, patching.Patch{Transforms: []patching.Transform{transform}})
}
